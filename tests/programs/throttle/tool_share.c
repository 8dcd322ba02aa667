/*
 * tool_share KERNEL MILLISECONDS [OWN]: a tool that the driver calls back launches this kernel, at most once in each round
 * of calls of the program, which launches nothing, or with OWN the shortest kernel in another stream. Prints how long
 * the work kept the card busy, and how long that took by the card's clock; the first quarter, in which the limit learns,
 * is not counted. Linked with -lcuda.
 */
#include "route.h"

static CUfunction kernel, least;
static CUstream stream, own;
static int armed, called, failures;

static void tool(void)
{
    if (!armed)
        return;
    armed = 0;
    called++;
    failures += cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) != 0;
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    CUmemGenericAllocationHandle memory;
    CUmemAllocationProp pinned = { .type = 1, .location = { .type = 1 } };
    void *stub = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    uint64_t (*now)(void) = (uint64_t(*)(void))some(dlsym(stub, "stubNow"), "stubNow");
    uint64_t (*busy_of)(unsigned int, unsigned int) = dlsym(stub, "stubBusyOf");
    if (argc < 3 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, argv[1]) ||
        cuModuleGetFunction(&least, module, "k_1us") || cuStreamCreate(&stream, 1) ||
        cuStreamCreate(&own, 1))
        return 1;
    ((void (*)(void (*)(void)))some(dlsym(stub, "stubTool"), "stubTool"))(tool);
    uint64_t length = strtoull(argv[2], NULL, 0) * 1000000, start = now(), begun = 0, busy = 0;
    for (uint64_t time = start; !failures && time < start + length; time = now()) {
        if (!begun && time > start + length / 4) {
            begun = time;
            busy = busy_of(0, (unsigned int)getpid());
        }
        armed = 1;
        if (argc > 3)
            failures += cuLaunchKernel(least, 1, 1, 1, 32, 1, 1, 0, own, NULL, NULL) || cuStreamSynchronize(own);
        failures += cuMemCreate(&memory, 2 << 20, &pinned, 0) || cuMemRelease(memory);
        armed = 0;
        failures += cuStreamSynchronize(stream) != 0;
    }
    printf("failed=%d\ncalled=%d\nbusy=%llu\nclock=%llu\n", failures, called,
           (unsigned long long)(busy_of(0, (unsigned int)getpid()) - busy), (unsigned long long)(now() - begun));
    return failures;
}
