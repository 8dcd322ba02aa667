/*
 * tool_many COUNT: a tool that the driver calls back launches this many kernels of 10 microseconds, each for the first
 * time, in one call of the program. Prints how many it launched, and how long the call took by the card's clock. Linked
 * with -lcuda.
 */
#include "route.h"

#define MOST 64

static CUfunction kernels[MOST];
static CUstream stream;
static int count, called, failures;

static void tool(void)
{
    for (; called < count; called++)
        failures += cuLaunchKernel(kernels[called], 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) != 0;
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    CUmemGenericAllocationHandle memory;
    CUmemAllocationProp pinned = { .type = 1, .location = { .type = 1 } };
    void *stub = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    uint64_t (*now)(void) = (uint64_t(*)(void))some(dlsym(stub, "stubNow"), "stubNow");
    count = argc > 1 ? atoi(argv[1]) : 0;
    if (count < 1 || count > MOST || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
        cuCtxSetCurrent(context) || cuStreamCreate(&stream, 1))
        return 1;
    for (int at = 0; at < count; at++)
        failures += cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernels[at], module, "k_10us");
    ((void (*)(void (*)(void)))some(dlsym(stub, "stubTool"), "stubTool"))(tool);
    uint64_t start = now();
    failures += cuMemCreate(&memory, 2 << 20, &pinned, 0) != 0;
    printf("failed=%d\ncalled=%d\nclock=%llu\n", failures, called, (unsigned long long)(now() - start));
    return failures;
}
