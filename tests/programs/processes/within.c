/*
 * within WHAT [BYTES]: while the driver carries out a call of one thread, another thread changes what the call is about. The
 * driver calls a tool back at the beginning of that call (stage 0) and perhaps at its end (stage 1), which lets the other
 * thread do so and goes on once it has, or sleeps until the call has ended. Prints what the call answered, the most bytes that the driver ever had out, and
 * what it has out now and what is charged. Linked with -lcuda -pthread.
 *
 *   graph          cuGraphInstantiateWithFlags: an allocation is added
 *   capture BYTES  cuMemAllocAsync in a stream that is captured: the capture ends
 *   current        cuMemAllocAsync: the current pool, which keeps enough for it, is replaced by an empty one
 *   pool           cuMemAllocFromPoolAsync of a pool in host memory: it is destroyed, and its handle is that of a pool on
 *                  the card from there on
 *   place          cuMemCreate: the memory is to be on the card in place of the host
 *   tiles          cuMemMapArrayAsync: another memory, of 100 in place of 200 MiB; the handles of both are released
 *   output         cuMemAlloc: at its end, the place for the address holds that of another allocation
 *   destroy        cuGraphInstantiateWithFlags: an allocation is added, and at its end the graph is destroyed
 *   stream         cuMemAllocAsync in a stream that does not exist: there is one of that name from the end of the
 *                  question about it on
 *   elsewhere      cuMemAllocAsync: its stream ends, and its name is that of one of another device
 *   refused        cuMemAlloc of nothing: the place for the address holds another thread's, and must stay so
 *   constant       cuMemSetMemPool, of a place that is constant
 */
#include "route.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>

#define MIB ((size_t)1 << 20)

static CUcontext context;
static CUstream stream;
static CUgraph graph;
static CUmemoryPool pool, second;
static CUdeviceptr pointer;
static size_t bytes;
static int stage, stages, failures;
static atomic_int thread_id, is_done;

struct way {
    const char *name;
    void (*prepare)(void), (*change)(void);
    CUresult (*call)(void);
};
static const struct way *way;

static void *symbol(const char *name)
{
    return some(dlsym(some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda"), name), name);
}

static void graph_prepare(void)
{
    failures += cuGraphCreate(&graph, 0) != 0;
}

static void graph_change(void)
{
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS params = { .bytesize = 600 * MIB };
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    failures += cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params) != 0;
}

static CUresult graph_call(void)
{
    CUgraphExec exec;
    CUresult result = cuGraphInstantiateWithFlags(&exec, graph, 0);
    if (!result)
        failures += cuGraphLaunch(exec, stream) || cuStreamSynchronize(stream);
    return result;
}

static void capture_prepare(void)
{
    failures += cuStreamBeginCapture_v2(stream, 2) != 0;
}

static void capture_change(void)
{
    CUgraph captured;
    failures += cuStreamEndCapture(stream, &captured) != 0;
}

static CUresult capture_call(void)
{
    return cuMemAllocAsync(&pointer, bytes, stream);
}

static CUmemoryPool new_pool(int place)
{
    CUmemoryPool made;
    CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { place, 0 } };
    uint64_t all = UINT64_MAX;
    failures += cuMemPoolCreate(&made, &props) ||
                cuMemPoolSetAttribute(made, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
    return made;
}

static CUresult current_call(void)
{
    return cuMemAllocAsync(&pointer, 300 * MIB, stream);
}

static void current_prepare(void)
{
    pool = new_pool(CU_MEM_LOCATION_TYPE_DEVICE);
    second = new_pool(CU_MEM_LOCATION_TYPE_DEVICE);
    failures += cuDeviceSetMemPool(0, pool) || current_call() || cuMemFreeAsync(pointer, stream);
}

static void current_change(void)
{
    failures += cuDeviceSetMemPool(0, second) != 0;
}

static void pool_prepare(void)
{
    pool = new_pool(2);
}

static void pool_change(void)
{
    failures += cuMemPoolDestroy(pool) != 0;
    second = new_pool(CU_MEM_LOCATION_TYPE_DEVICE);
    failures += second != pool;
}

static CUresult pool_call(void)
{
    return cuMemAllocFromPoolAsync(&pointer, 600 * MIB, pool, stream);
}

static CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED };

static void place_prepare(void)
{
    prop.location.type = 2;
}

static void place_change(void)
{
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
}

static CUresult place_call(void)
{
    CUmemGenericAllocationHandle handle;
    return cuMemCreate(&handle, 600 * MIB, &prop, 0);
}

/* CUarrayMapInfo, which the header does not have. */
static struct {
    int resource_type;
    uint64_t resource;
    int subresource_type;
    uint64_t level_and_layer;
    unsigned int offset[3], extent[3];
    int operation, handle_type;
    uint64_t handle, offset_in_memory;
    unsigned int devices, flags, reserved[2];
} map = { .extent = { 128, 128, 1 }, .operation = 1, .devices = 1 };
static CUmemGenericAllocationHandle memory[2];

static void tiles_prepare(void)
{
    CUDA_ARRAY3D_DESCRIPTOR form = { .Width = 128, .Height = 128, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1,
                                     .Flags = 0x40 };
    CUarray array;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    failures += cuArray3DCreate_v2(&array, &form) || cuMemCreate(&memory[0], 200 * MIB, &prop, 0) ||
                cuMemCreate(&memory[1], 100 * MIB, &prop, 0);
    map.resource = (uint64_t)array;
    map.handle = memory[0];
}

static void tiles_change(void)
{
    map.handle = memory[1];
}

static CUresult tiles_call(void)
{
    CUresult result = ((CUresult (*)(void *, unsigned int, CUstream))symbol("cuMemMapArrayAsync"))(&map, 1, stream);
    failures += cuMemRelease(memory[0]) || cuMemRelease(memory[1]);
    return result;
}

static CUdeviceptr large;

static void output_prepare(void)
{
    failures += cuMemAlloc_v2(&large, 300 * MIB) != 0;
}

static void output_change(void)
{
    if (stage == 1)
        pointer = large;
}

static CUresult output_call(void)
{
    return cuMemAlloc_v2(&pointer, MIB);
}

static void destroy_change(void)
{
    if (stage == 0)
        graph_change();
    else
        failures += cuGraphDestroy(graph) != 0;
}

static void stream_prepare(void)
{
    failures += cuStreamDestroy_v2(stream) != 0;
}

static void stream_change(void)
{
    CUstream made = stream;
    if (stage == 1)
        failures += cuStreamCreate(&made, 1) || made != stream;
}

static CUresult stream_call(void)
{
    return cuMemAllocAsync(&pointer, 600 * MIB, stream);
}

static void elsewhere_change(void)
{
    CUcontext other;
    CUstream made;
    failures += cuDevicePrimaryCtxRetain(&other, 1) || cuCtxSetCurrent(other) || cuStreamDestroy_v2(stream) ||
                cuStreamCreate(&made, 1) || made != stream;
}

static void refused_change(void)
{
    pointer = large;
}

static CUresult refused_call(void)
{
    CUresult result = cuMemAlloc_v2(&pointer, 0);
    failures += pointer != large;
    return result;
}

static void nothing(void)
{
}

static CUresult constant_call(void)
{
    static const CUmemLocation DEVICE = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
    CUresult (*set)(const CUmemLocation *, int, CUmemoryPool) =
        (CUresult (*)(const CUmemLocation *, int, CUmemoryPool))symbol("cuMemSetMemPool");
    return set(&DEVICE, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}

static const struct way WAYS[] = {
    { "capture", capture_prepare, capture_change, capture_call },
    { "current", current_prepare, current_change, current_call },
    { "pool", pool_prepare, pool_change, pool_call },
    { "graph", graph_prepare, graph_change, graph_call },
    { "place", place_prepare, place_change, place_call },
    { "tiles", tiles_prepare, tiles_change, tiles_call },
    { "output", output_prepare, output_change, output_call },
    { "destroy", graph_prepare, destroy_change, graph_call },
    { "stream", stream_prepare, stream_change, stream_call },
    { "elsewhere", nothing, elsewhere_change, current_call },
    { "refused", output_prepare, refused_change, refused_call },
    { "constant", current_prepare, nothing, constant_call },
};

static int sleeps(int thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    int read = file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    if (file)
        fclose(file);
    return read && state == 'S';
}

static void *other(void *unused)
{
    failures += cuCtxSetCurrent(context) != 0;
    thread_id = (int)syscall(SYS_gettid);
    way->change();
    is_done = 1;
    return unused;
}

static pthread_t threads[2];

static void tool(void)
{
    if (stage >= stages)
        return;
    is_done = thread_id = 0;
    failures += pthread_create(&threads[stage], NULL, other, NULL) != 0;
    while (!is_done && (!thread_id || !sleeps(thread_id)))
        sched_yield();
    stage++;
}

int main(int argc, char **argv)
{
    uint64_t (*held)(unsigned int) = symbol("stubHeld"), (*peak)(unsigned int) = symbol("stubPeak");
    for (size_t at = 0; argc > 1 && at < sizeof WAYS / sizeof *WAYS; at++)
        way = strcmp(argv[1], WAYS[at].name) ? way : &WAYS[at];
    if (!way || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuStreamCreate(&stream, 1))
        return 1;
    ((void (*)(void (*)(void)))symbol("stubTool"))(tool);
    bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    way->prepare();
    stages = 2;
    CUresult result = way->call();
    stages = 0;
    for (int at = 0; at < stage; at++)
        pthread_join(threads[at], NULL);
    size_t left = 0, total = 0;
    failures += cuMemGetInfo_v2(&left, &total) != 0;
    printf("called=%d\nanswer=%d\nfailures=%d\ncharged=%zu\n", stage, (int)result, failures, total - left);
    printf("held=%llu\npeak=%llu\n", (unsigned long long)held(0), (unsigned long long)peak(0));
    return 0;
}
