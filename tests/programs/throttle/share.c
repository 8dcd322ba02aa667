/*
 * share KERNEL DEPTH MILLISECONDS [STREAMS [NODES]]: launches a kernel of the stub, into STREAMS streams in turn, and
 * waits after every DEPTH launches. Of the kernel `spin_ns` one launch in a hundred takes a hundred times as long as the
 * others, which no argument shows. A KERNEL that begins with `fresh` is another function for each launch. With NODES it
 * launches a graph of NODES such kernels instead. Prints how long the work kept the card busy, and how long that took by
 * the card's clock; the first quarter, in which the limit learns, is not counted, but in what all of it was. With
 * NO_FILES in its environment it can open none from its first launch on; with ELSEWHERE it has this root directory from its
 * cuInit on. Linked with -lcuda.
 */
#include "route.h"

#include <sys/resource.h>

static CUmodule module;
static CUfunction kernel;
static CUgraphExec exec;
static const char *fresh;

static CUresult launch(CUstream stream)
{
    static int count;
    uint64_t ns = count++ % 100 ? 10000 : 1280000;
    void *params[] = { &ns };
    char name[64];
    if (fresh && (snprintf(name, sizeof name, "k%d_%s", count, fresh), cuModuleGetFunction(&kernel, module, name)))
        return 1;
    return exec ? cuGraphLaunch(exec, stream) : cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static CUresult record(CUstream stream, int nodes)
{
    CUgraph graph;
    CUresult result = cuStreamBeginCapture_v2(stream, 0);
    for (int i = 0; i < nodes && !result; i++)
        result = launch(stream);
    return result || cuStreamEndCapture(stream, &graph) || cuGraphInstantiateWithFlags(&exec, graph, 0);
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUstream streams[16] = { NULL };
    void *stub = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    uint64_t (*now)(void) = (uint64_t(*)(void))some(dlsym(stub, "stubNow"), "stubNow");
    uint64_t (*busy_of)(unsigned int, unsigned int) = dlsym(stub, "stubBusyOf");
    const char *root = getenv("ELSEWHERE");
    if (argc < 4 || cuInit(0) || (root && chroot(root)) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, argv[1]))
        return 1;
    fresh = strncmp(argv[1], "fresh", 5) ? NULL : argv[1];
    int depth = atoi(argv[2]), count = argc > 4 ? atoi(argv[4]) : 0, failed = 0;
    for (int i = 0; i < count; i++)
        failed |= cuStreamCreate(&streams[i], 1) != 0;
    if (argc > 5)
        failed |= record(streams[0], atoi(argv[5])) != 0;
    if (getenv("NO_FILES"))
        failed |= setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, 0 }) != 0;
    uint64_t length = strtoull(argv[3], NULL, 0) * 1000000, start = now(), begun = 0, busy = 0;
    for (uint64_t time = start; !failed && time < start + length; time = now()) {
        if (!begun && time > start + length / 4) {
            begun = time;
            busy = busy_of(0, (unsigned int)getpid());
        }
        for (int i = 0; i < depth; i++)
            failed |= launch(streams[count ? i % count : 0]) != 0;
        failed |= cuCtxSynchronize() != 0;
    }
    uint64_t all = busy_of(0, (unsigned int)getpid());
    printf("failed=%d\nbusy=%llu\nclock=%llu\nall=%llu\n", failed, (unsigned long long)(all - busy),
           (unsigned long long)(now() - begun), (unsigned long long)all);
    return failed;
}
