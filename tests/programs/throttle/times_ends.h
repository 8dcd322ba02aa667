/*
 * What `times` makes and ends: contexts, streams, code, graphs, and a process beside it. All of these end with work in
 * flight, too. What has ended is not used again; what was made in a context that has ended is forgotten.
 */
#ifndef TIMES_ENDS_H
#define TIMES_ENDS_H

static void stream(void)
{
    struct owner *owner = some_owner();
    CUstream *place = &ANY(owner->streams);
    unsigned int flags = below(2);
    int is_pushed = enter(owner);
    if (*place) {
        note("stream %p", (void *)*place);
        if (DO(cuStreamDestroy_v2, *place) == 0)
            *place = NULL;
    } else if (owner == owners && green_one.green && below(2)) {
        DO(cuGreenCtxStreamCreate, place, green_one.green, 1, 0);
    } else if (below(2)) {
        DO(cuStreamCreate, place, flags);
    } else {
        DO(cuStreamCreateWithPriority, place, flags, -(int)below(3));
    }
    leave(is_pushed);
}

static void end_graph(struct graph *graph)
{
    if (!graph->graph)
        return;
    if (graph->exec)
        DO(cuGraphExecDestroy, graph->exec);
    DO(cuGraphDestroy, graph->graph);
    memset(graph, 0, sizeof *graph);
}

static void end_graphs(struct owner *owner)
{
    for (size_t i = 0; i < GRAPHS; i++)
        end_graph(&owner->graphs[i]);
}

/* Graphs are of modules' functions alone, and end before these. */
static void code(void)
{
    struct owner *owner = some_owner();
    if (below(2)) {
        if (library && DO(cuLibraryUnload, library) == 0)
            library = NULL;
        else if (!library)
            DO(cuLibraryLoadData, &library, "image", NULL, NULL, 0, NULL, NULL, 0);
        return;
    }
    int is_pushed = enter(owner);
    end_graphs(owner);
    if (owner->module && DO(cuModuleUnload, owner->module) == 0)
        owner->module = NULL;
    leave(is_pushed);
}

static CUfunction node_function(struct owner *owner)
{
    CUlibrary hidden = library;
    library = NULL;
    CUfunction function = some_function(owner);
    library = hidden;
    return function;
}

static void add_nodes(struct owner *owner, struct graph *graph, int count)
{
    CUDA_KERNEL_NODE_PARAMS_v2 params = { NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL, NULL };
    if (DO(cuGraphCreate, &graph->graph, 0))
        return;
    for (; graph->count < count; graph->count++) {
        CUgraphNode *node = &graph->nodes[graph->count];
        params.func = node_function(owner);
        if (!params.func || DO(cuGraphAddKernelNode_v2, node, graph->graph, node - 1, graph->count != 0, &params))
            return;
    }
}

/* Other streams may take part in a capture, and others go on beside it. */
static void capture(struct owner *owner, struct graph *graph, int count)
{
    CUstream stream = owner->streams[0], second = owner->streams[1], third = owner->streams[2];
    CUevent event = owner->events[0], back = owner->events[1];
    CUfunction kernels[NODES] = { NULL };
    for (int i = 0; i < count; i++)
        kernels[i] = node_function(owner);
    if (!stream || DO(cuStreamBeginCapture_v2, stream, (int)below(3)))
        return;
    int is_joined = second && event && back && below(2) && DO(cuEventRecord, event, stream) == 0 &&
                    DO(cuStreamWaitEvent, second, event, 0) == 0;
    for (int i = 0; i < count; i++)
        DO(cuLaunchKernel, kernels[i], 1, 1, 1, 32, 1, 1, 0, is_joined && i % 2 ? second : stream, NULL, NULL);
    if (third && below(2))
        DO(cuLaunchKernel, kernels[0], 1, 1, 1, 32, 1, 1, 0, third, NULL, NULL);
    if (is_joined && DO(cuEventRecord, back, second) == 0)
        DO(cuStreamWaitEvent, stream, back, 0);
    if (DO(cuStreamEndCapture, stream, &graph->graph))
        graph->graph = NULL;
    /* The events stand for the capture from now on. */
    for (size_t i = 0; is_joined && i < EVENTS; i++)
        if (DO(cuEventDestroy_v2, owner->events[i]) == 0)
            owner->events[i] = NULL;
    graph->count = count;
}

static void make_graph(struct owner *owner, struct graph *graph, int count)
{
    below(2) ? add_nodes(owner, graph, count) : capture(owner, graph, count);
    if (graph->graph && (graph->count != count || DO(cuGraphInstantiateWithFlags, &graph->exec, graph->graph, 0)))
        end_graph(graph);
    if (!graph->graph)
        memset(graph, 0, sizeof *graph);
}

/* What its launches do from now on is something else. */
static void change_graph(struct owner *owner, struct graph *graph)
{
    struct { int result; CUgraphNode error, from; } info;
    struct graph other = { NULL, NULL, { NULL }, 0 };
    CUDA_KERNEL_NODE_PARAMS_v2 params = { NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL, NULL };
    CUgraphNode node = graph->nodes[below((uint64_t)graph->count)];
    switch (node ? below(3) : 2) {
    case 0:
        if ((params.func = node_function(owner)))
            DO(cuGraphExecKernelNodeSetParams_v2, graph->exec, node, &params);
        break;
    case 1: DO(cuGraphNodeSetEnabled, graph->exec, node, below(2)); break;
    default:
        add_nodes(owner, &other, graph->count);
        if (other.count == graph->count)
            DO(cuGraphExecUpdate_v2, graph->exec, other.graph, &info);
        end_graph(&other);
        break;
    }
}

static void graph(void)
{
    struct owner *owner = some_owner();
    struct graph *graph = &ANY(owner->graphs);
    int is_pushed = enter(owner);
    if (!graph->exec)
        make_graph(owner, graph, 1 + (int)below(NODES));
    switch (graph->exec ? below(6) : 5) {
    case 0: change_graph(owner, graph); break;
    case 1: end_graph(graph); break;
    case 2: DO(cuGraphLaunch_ptsz, graph->exec, NULL); break;
    case 5: break;
    default:
        for (uint64_t count = 1 + below(3); count; count--)
            DO(cuGraphLaunch, graph->exec, some_stream(owner));
        break;
    }
    leave(is_pushed);
}

/* After the end of a context that may be current somewhere. */
static void forget(struct owner *owner)
{
    for (int i = 0; i < THREADS; i++)
        if (threads[i].current == owner->context)
            threads[i].current = NULL;
    memset(owner, 0, sizeof *owner);
}

/* Graphs that outlive their context are never used again. */
static void before_end(struct owner *owner)
{
    if (below(2))
        end_graphs(owner);
    note("context %p ends", (void *)owner->context);
}

static void context(void)
{
    struct owner *owner = &owners[1 + below(OWNERS - 1)];
    CUcontext popped;
    if (owner->context) {
        before_end(owner);
        if (DO(cuCtxDestroy_v2, owner->context) == 0)
            forget(owner);
        return;
    }
    if (DO(cuCtxCreate_v2, &owner->context, 0, 0))
        return;
    self->current = owner->context;
    if (below(2)) {
        self->current = NULL;
        DO(cuCtxPopCurrent_v2, &popped);
    }
}

static void forget_green(void)
{
    for (int i = 0; i < THREADS; i++)
        if (threads[i].current == green_one.context)
            threads[i].current = NULL;
    memset(&green_one, 0, sizeof green_one);
}

/* One that a green context holds as well goes on when it is released. */
static void primary(void)
{
    unsigned int flags;
    int is_active = 0;
    if (!owners->context) {
        if (DO(cuDevicePrimaryCtxRetain, &owners->context, 0) == 0)
            is_retained = 1;
        return;
    }
    before_end(owners);
    if (!is_retained || below(2)) {
        if (DO(cuDevicePrimaryCtxReset_v2, 0))
            return;
        forget_green();
    } else if (DO(cuDevicePrimaryCtxRelease_v2, 0) || DO(cuDevicePrimaryCtxGetState, 0, &flags, &is_active)) {
        return;
    }
    is_retained = 0;
    if (!is_active)
        forget(owners);
}

/* A green context makes the primary one as well, and ends it if nothing else holds it. */
static void green(void)
{
    uint32_t resource[36];
    void *description;
    if (green_one.green) {
        note("green context %p ends", (void *)green_one.context);
        if (DO(cuGreenCtxDestroy, green_one.green))
            return;
        forget_green();
        if (!is_retained)
            forget(owners);
        return;
    }
    if (DO(cuDeviceGetDevResource, 0, resource, 1) || DO(cuDevResourceGenerateDesc, &description, resource, 1) ||
        DO(cuGreenCtxCreate, &green_one.green, description, 0, 1) ||
        DO(cuCtxFromGreenCtx, &green_one.context, green_one.green))
        return;
    if (!owners->context && DO(cuDevicePrimaryCtxRetain, &owners->context, 0) == 0)
        is_retained = 1;
}

/* One context ends, or is made, beside work in another one; perhaps by a thread that has none. */
static void sudden(void)
{
    static void (*const ways[])(void) = { context, primary, primary, green };
    for (uint64_t count = 1 + below(2); count; count--)
        work();
    if (below(2) && DO(cuCtxSetCurrent, NULL) == 0)
        self->current = NULL;
    ANY(ways)();
    if (below(2))
        context();
}

/* A child in which the driver refuses everything. */
static void child(void)
{
    int status, asks = below(2) != 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(asks ? (int)cuCtxSynchronize() : 0);
    waitpid(pid, &status, 0);
    note("child");
}

static void have_context(void)
{
    for (int i = 0; i < OWNERS; i++)
        if (owners[i].context)
            return;
    if (below(2))
        is_retained = DO(cuDevicePrimaryCtxRetain, &owners->context, 0) == 0;
    else if (DO(cuCtxCreate_v2, &owners[1].context, 0, 0) == 0)
        self->current = owners[1].context;
}

/* The card has done all that it was given, and the library knows. */
static void wait_for_all(void)
{
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < OWNERS; i++) {
            if (owners[i].context) {
                DO(cuCtxSetCurrent, owners[i].context);
                self->current = owners[i].context;
                DO(cuCtxSynchronize);
            }
        }
    }
    compare();
}

#endif
