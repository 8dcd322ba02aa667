/*
 * argv: WHAT ROUNDS PRICE BYTES. Two threads do the same at once, again and again, and after each round the first one
 * checks what the shim says is in use. A context costs PRICE. WHAT is
 *   limit    both set the heap of one context, to different sizes, and down again
 *   context  one destroys the context of the round before while the other makes one and allocates BYTES in it
 *   code     both load a module, which takes BYTES, then both unload theirs
 *   detach   both detach from a context of two users
 *   graph    one launches graphs that allocate most of the device and ends them, while the other trims what they keep
 *   refused  one frees what it has of the default pool, which keeps it, while the other tries to destroy that pool
 *   pool     one frees what it has of a pool, three times BYTES, while the other destroys the pool
 */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USED(X) \
    X(cuInit) X(cuCtxCreate_v2) X(cuCtxDestroy_v2) X(cuCtxSetCurrent) X(cuCtxSetLimit) X(cuMemAlloc_v2) \
    X(cuMemGetInfo_v2) X(cuModuleLoadData) X(cuModuleUnload) X(cuCtxGetLimit) X(cuCtxAttach) X(cuCtxDetach) \
    X(cuGraphCreate) X(cuGraphAddMemAllocNode) X(cuGraphInstantiateWithFlags) X(cuGraphLaunch) X(cuGraphDestroy) \
    X(cuGraphExecDestroy) X(cuDeviceGraphMemTrim) X(cuMemFree_v2) X(cuMemPoolCreate) X(cuMemPoolDestroy) \
    X(cuMemAllocFromPoolAsync) X(cuMemFreeAsync) X(cuCtxSynchronize) X(cuDeviceGetDefaultMemPool) \
    X(cuMemPoolSetAttribute) X(cuMemPoolGetAttribute) X(cuMemPoolTrimTo)
#define POINTER(name) static name##_fn call_##name;
USED(POINTER)

#define RELEASE_THRESHOLD 4 /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */
#define RESERVED 5 /* CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT */
#define HEAP 2 /* CU_LIMIT_MALLOC_HEAP_SIZE */
#define HEAP_AT_START ((size_t)8 << 20)

static atomic_size_t arrived;
static size_t rounds, price, bytes;
static size_t wrong, failed; /* the first thread's */
static size_t failed_beside; /* the second's */
static CUcontext kept, made;

/* The two go on as close together as they can: a barrier of the library would wake one after the other. */
static void meet(void)
{
    size_t goal = (atomic_fetch_add(&arrived, 1) / 2 + 1) * 2;
    while (atomic_load(&arrived) < goal)
        sched_yield();
}

static size_t in_use(void)
{
    size_t free_bytes = 0, all = 0;
    failed += call_cuMemGetInfo_v2(&free_bytes, &all) != 0;
    return all - free_bytes;
}

static void check(size_t expected)
{
    size_t found = in_use();
    if (found != expected && wrong++ == 0)
        fprintf(stderr, "%zu bytes are in use, not %zu\n", found, expected);
}

static void set_limits(int first)
{
    size_t *fails = first ? &failed : &failed_beside;
    *fails += call_cuCtxSetCurrent(kept) != 0;
    for (size_t round = 0; round < rounds; round++) {
        size_t more = round % 2 ? 0 : first ? bytes : 2 * bytes, kept_size = 0;
        meet();
        *fails += call_cuCtxSetLimit(HEAP, HEAP_AT_START + more) != 0;
        meet();
        if (first) {
            failed += call_cuCtxGetLimit(&kept_size, HEAP) != 0;
            check(price + kept_size - HEAP_AT_START);
        }
    }
}

/* Now earlier, now later in the other's call. */
static void wait_a_little(size_t round)
{
    for (volatile size_t spin = round % 4096; spin; spin--)
        continue;
}

static void detach(int first)
{
    static CUcontext shared;
    size_t *fails = first ? &failed : &failed_beside;
    CUcontext same;
    for (size_t round = 0; round < rounds; round++) {
        if (first)
            failed += call_cuCtxCreate_v2(&shared, 0, 0) || call_cuCtxAttach(&same, 0) || same != shared;
        meet();
        *fails += call_cuCtxSetCurrent(shared) != 0;
        meet();
        if (!first)
            wait_a_little(round);
        *fails += call_cuCtxDetach(shared) != 0;
        meet();
        if (first) {
            failed += call_cuCtxSetCurrent(kept) != 0;
            check(price);
        }
    }
}

static void end_graphs(int first)
{
    static atomic_int over;
    size_t all = 0, size = 0;
    if (!first) {
        failed_beside += call_cuCtxSetCurrent(kept) != 0;
        while (!atomic_load(&over))
            failed_beside += call_cuDeviceGraphMemTrim(0) != 0;
        return;
    }
    /* Two of them would not fit. */
    failed += call_cuMemGetInfo_v2(&size, &all) != 0;
    size = size / 4 * 3;
    for (size_t round = 0; round < rounds; round++) {
        CUgraph graph;
        CUgraphNode node;
        CUgraphExec exec;
        CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = size};
        params.poolProps.allocType = 1, params.poolProps.location = (CUmemLocation){1, 0};
        failed += call_cuGraphCreate(&graph, 0) || call_cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params) ||
                  call_cuGraphInstantiateWithFlags(&exec, graph, 0);
        failed += call_cuGraphLaunch(exec, NULL) || call_cuCtxSynchronize();
        failed += call_cuGraphExecDestroy(exec) || call_cuGraphDestroy(graph);
        check(price + size); /* no node has freed it */
        failed += call_cuMemFree_v2(params.dptr) != 0;
    }
    atomic_store(&over, 1);
    failed += call_cuDeviceGraphMemTrim(0) != 0;
}

static void end_pools(int first)
{
    static CUmemoryPool pool;
    failed_beside += !first && call_cuCtxSetCurrent(kept);
    for (size_t round = 0; round < rounds; round++) {
        CUmemPoolProps props = {.allocType = 1, .location = {1, 0}};
        CUdeviceptr taken[3];
        if (first) {
            failed += call_cuMemPoolCreate(&pool, &props) != 0;
            for (int i = 0; i < 3; i++)
                failed += call_cuMemAllocFromPoolAsync(&taken[i], bytes, pool, NULL) != 0;
        }
        meet();
        if (first) {
            for (int i = 0; i < 3; i++)
                failed += call_cuMemFreeAsync(taken[i], NULL) != 0;
        } else {
            wait_a_little(round);
            failed_beside += call_cuMemPoolDestroy(pool) != 0;
        }
        meet();
        if (first) {
            failed += call_cuCtxSynchronize() != 0;
            check(price);
        }
    }
}

static void change_contexts(int first)
{
    for (size_t round = 0; round < rounds; round++) {
        CUdeviceptr pointer;
        meet();
        wait_a_little(first ? 0 : round);
        if (first)
            failed += call_cuCtxDestroy_v2(kept) != 0;
        else
            failed_beside += call_cuCtxCreate_v2(&made, 0, 0) || call_cuMemAlloc_v2(&pointer, bytes);
        meet();
        if (first) {
            kept = made;
            failed += call_cuCtxSetCurrent(kept) != 0;
            check(price + bytes);
        } else {
            failed_beside += call_cuCtxSetCurrent(NULL) != 0;
        }
    }
}

static void load_code(int first)
{
    size_t *fails = first ? &failed : &failed_beside;
    *fails += call_cuCtxSetCurrent(kept) != 0;
    for (size_t round = 0; round < rounds; round++) {
        CUmodule module;
        meet();
        wait_a_little(first ? 0 : round);
        *fails += call_cuModuleLoadData(&module, ".version") != 0;
        meet();
        if (first)
            check(price + 2 * bytes);
        meet();
        *fails += call_cuModuleUnload(module) != 0;
        meet();
        if (first)
            check(price);
    }
}

static void refuse_the_end(int first)
{
    CUmemoryPool pool;
    uint64_t all = UINT64_MAX, reserved = 0;
    failed_beside += !first && call_cuCtxSetCurrent(kept);
    *(first ? &failed : &failed_beside) += call_cuDeviceGetDefaultMemPool(&pool, 0) != 0;
    failed += first && call_cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &all);
    for (size_t round = 0; round < rounds; round++) {
        CUdeviceptr taken = 0;
        failed += first && call_cuMemAllocFromPoolAsync(&taken, bytes, pool, NULL);
        meet();
        if (first)
            failed += call_cuMemFreeAsync(taken, NULL) != 0;
        else
            wait_a_little(round), failed_beside += call_cuMemPoolDestroy(pool) == 0;
        meet();
        if (!first)
            continue;
        failed += call_cuCtxSynchronize() || call_cuMemPoolGetAttribute(pool, RESERVED, &reserved);
        wrong += in_use() < price + reserved; /* what was trimmed before the free was known may be charged still */
        failed += call_cuMemPoolTrimTo(pool, 0) != 0;
        check(price);
    }
}

static const struct {
    const char *name;
    void (*body)(int first);
} bodies[] = {
    {"limit", set_limits}, {"context", change_contexts}, {"code", load_code},
    {"detach", detach},    {"graph", end_graphs},        {"pool", end_pools},
    {"refused", refuse_the_end},
};

static void (*body)(int first);

static void *work(void *first)
{
    body(first != NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t beside;
    if (argc != 5)
        return 2;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (strcmp(argv[1], bodies[i].name) == 0)
            body = bodies[i].body;
    if (!body)
        return 2;
    rounds = strtoul(argv[2], NULL, 10), price = strtoul(argv[3], NULL, 10), bytes = strtoul(argv[4], NULL, 10);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name) if (!library || !(call_##name = (name##_fn)dlsym(library, #name))) return 3;
    USED(FIND)
    if (call_cuInit(0) || call_cuCtxCreate_v2(&kept, 0, 0))
        return 1;
    if (pthread_create(&beside, NULL, work, NULL))
        return 2;
    work(&beside);
    pthread_join(beside, NULL);
    if (call_cuCtxDestroy_v2(kept))
        failed++;
    printf("wrong=%zu\nfailed=%zu\n", wrong, failed + failed_beside);
    return 0;
}
