/*
 * tool_endless KERNEL MILLISECONDS: a tool that the driver calls back launches this kernel as often as it can, in one call
 * of the program that ends with the process, until that time has passed by the card's clock. Prints how many launches were
 * accepted, and for how much of the last three quarters of the time the work kept the card busy. Linked with -lcuda.
 */
#include "route.h"

static CUfunction kernel;
static CUstream stream;
static uint64_t length, begun, busy;
static uint64_t (*now)(void), (*busy_of)(unsigned int, unsigned int);
static int called;

static void tool(void)
{
    static int inside;
    if (inside++)
        return;
    uint64_t start = now();
    for (uint64_t time = start; time < start + length; time = now()) {
        if (!begun && time > start + length / 4) {
            begun = time;
            busy = busy_of(0, (unsigned int)getpid());
        }
        if (cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) == 0)
            called++;
        else
            usleep(1000);
    }
    printf("called=%d\nbusy=%llu\nclock=%llu\n", called, (unsigned long long)(busy_of(0, (unsigned int)getpid()) - busy),
           (unsigned long long)(now() - begun));
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    CUmemGenericAllocationHandle memory;
    CUmemAllocationProp pinned = { .type = 1, .location = { .type = 1 } };
    void *stub = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    now = (uint64_t(*)(void))some(dlsym(stub, "stubNow"), "stubNow");
    busy_of = (uint64_t(*)(unsigned int, unsigned int))some(dlsym(stub, "stubBusyOf"), "stubBusyOf");
    if (argc < 3 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, argv[1]) ||
        cuStreamCreate(&stream, 1))
        return 1;
    length = strtoull(argv[2], NULL, 0) * 1000000;
    ((void (*)(void (*)(void)))some(dlsym(stub, "stubTool"), "stubTool"))(tool);
    for (;;)
        if (cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) || cuMemCreate(&memory, 2 << 20, &pinned, 0))
            return 1;
}
