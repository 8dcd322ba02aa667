/*
 * The actor's commands for nodes of graphs and what becomes of them. A graph's allocations are on card 0.
 *
 *   add-node G BYTES FORM      an allocation by cuGraphAddNode, of the first to third form
 *   add-child G C, move-child G C   graph C as a node of G: a copy of it, or itself
 *   clone H G                  a copy of graph G in H
 *   same H G                   graph G under another letter
 *   set-node G BYTES           other parameters for the first node of a graph, which allocates
 *   set-exec-node X G BYTES    the same in what it was made into
 *   update1 X G, update2 X G   cuGraphExecUpdate: what X does is from here on what G does
 *   graph-memory A ATTRIBUTE, pool-attribute A P ATTRIBUTE
 */
#ifndef ACTOR_GRAPH_H
#define ACTOR_GRAPH_H

typedef struct {
    int type, reserved[3];
    union {
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        struct {
            uint64_t graph;
            int ownership;
        } child;
        char bytes[232];
    };
    uint64_t reserved2;
} node_params;
_Static_assert(sizeof(node_params) == 256, "CUgraphNodeParams");

static node_params alloc_params(uint64_t bytes)
{
    node_params params = { .type = 10 };
    params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.alloc.bytesize = bytes;
    return params;
}

static CUresult add_node(uint64_t graph, node_params params, uint64_t form)
{
    const char *names[] = { "cuGraphAddNode", "cuGraphAddNode_v2", "cuGraphAddNode_v3" };
    void *call = named(names[form - 1]);
    uint64_t node;
    if (form == 1)
        return ((CUresult(*)(uint64_t *, uint64_t, void *, size_t, node_params *))call)(&node, graph, NULL, 0, &params);
    return ((CUresult(*)(uint64_t *, uint64_t, void *, void *, size_t, node_params *))call)(&node, graph, NULL, NULL, 0,
                                                                                          &params);
}

static CUresult add_child(uint64_t graph, uint64_t child)
{
    uint64_t node;
    CUresult (*call)(uint64_t *, uint64_t, void *, size_t, uint64_t) = named("cuGraphAddChildGraphNode");
    return call(&node, graph, NULL, 0, child);
}

static CUresult move_child(uint64_t graph, uint64_t child)
{
    node_params params = { .type = 4, .child = { child, 1 } };
    return add_node(graph, params, 3);
}

static CUresult clone_graph(uint64_t *clone, uint64_t graph)
{
    CUresult (*call)(uint64_t *, uint64_t) = named("cuGraphClone");
    return call(clone, graph);
}

static CUresult first_node(uint64_t *node, uint64_t graph)
{
    size_t count = 1;
    CUresult (*call)(uint64_t, uint64_t *, size_t *) = named("cuGraphGetNodes");
    return call(graph, node, &count);
}

static CUresult set_node(uint64_t graph, uint64_t bytes)
{
    uint64_t node;
    node_params params = alloc_params(bytes);
    CUresult (*call)(uint64_t, node_params *) = named("cuGraphNodeSetParams");
    CUresult result = first_node(&node, graph);
    return result ? result : call(node, &params);
}

static CUresult set_exec_node(uint64_t exec, uint64_t graph, uint64_t bytes)
{
    uint64_t node;
    node_params params = alloc_params(bytes);
    CUresult (*call)(uint64_t, uint64_t, node_params *) = named("cuGraphExecNodeSetParams");
    CUresult result = first_node(&node, graph);
    return result ? result : call(exec, node, &params);
}

static CUresult update(const char *name, uint64_t exec, uint64_t graph)
{
    uint64_t answer[3], node;
    if (strcmp(name, "cuGraphExecUpdate") == 0)
        return ((CUresult(*)(uint64_t, uint64_t, uint64_t *, uint64_t *))named(name))(exec, graph, &node, answer);
    return ((CUresult(*)(uint64_t, uint64_t, uint64_t *))named(name))(exec, graph, answer);
}

static CUresult graph_memory(uint64_t *value, int attribute)
{
    CUresult (*call)(int, int, uint64_t *) = named("cuDeviceGetGraphMemAttribute");
    return call(0, attribute, value);
}

/* False if the verb is none of these. */
static int obey_graph(CUresult *result, const char *verb, uint64_t *slot, uint64_t *from, uint64_t first,
                      uint64_t second)
{
#define COMMAND(word, call) if (strcmp(verb, word) == 0) return *result = (call), 1;
    COMMAND("add-node", add_node(*slot, alloc_params(first), second))
    COMMAND("add-child", add_child(*slot, *from))
    COMMAND("move-child", move_child(*slot, *from))
    COMMAND("clone", clone_graph(slot, *from))
    COMMAND("same", (*slot = *from, 0))
    COMMAND("set-node", set_node(*slot, first))
    COMMAND("set-exec-node", set_exec_node(*slot, *from, first))
    COMMAND("update1", update("cuGraphExecUpdate", *slot, *from))
    COMMAND("update2", update("cuGraphExecUpdate_v2", *slot, *from))
    COMMAND("graph-memory", graph_memory(slot, (int)first))
    COMMAND("pool-attribute", call_cuMemPoolGetAttribute((CUmemoryPool)*from, (int)first, slot))
#undef COMMAND
    return 0;
}

#endif
