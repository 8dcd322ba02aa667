/*
 * silent WAY MILLISECONDS [default]: launches a function that takes 10 us fifty times, waits for each, and launches it once
 * more, so that it takes that long, in a stream of its own or the default one. Then it makes no call until that has ended,
 * as one does who looks for a result in memory; and `exit`: ends without a wait, `again`: launches once more and waits,
 * `die`: is killed halfway. Linked with -lcuda.
 */
#include "route.h"

#include <signal.h>
#include <time.h>

static CUfunction kernel;
static CUstream stream;

static int launch(uint64_t ns)
{
    void *params[] = { &ns };
    return cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL) != 0;
}

static void rest(uint64_t ns)
{
    struct timespec time = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    while (nanosleep(&time, &time))
        ;
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    if (argc < 3 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "spin_ns") ||
        (argc == 3 && cuStreamCreate(&stream, 1)))
        return 1;
    uint64_t ns = strtoull(argv[2], NULL, 10) * 1000000;
    for (int i = 0; i < 50; i++)
        if (launch(10000) || cuCtxSynchronize())
            return 2;
    if (launch(ns))
        return 3;
    if (!strcmp(argv[1], "die")) {
        rest(ns / 2);
        raise(SIGKILL);
    }
    rest(ns + 50000000);
    if (!strcmp(argv[1], "again") && (launch(10000) || cuCtxSynchronize()))
        return 4;
    _exit(0);
}
