/*
 * few_files LEFT: once it has a context, leaves itself this many descriptors, and launches eight kernels of 10 ms, waiting
 * after every fourth. Linked with -lcuda.
 */
#include "route.h"

#include <fcntl.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    if (argc != 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "k_10ms"))
        return 1;
    int next = open("/dev/null", O_RDONLY);
    close(next);
    struct rlimit limit = { (rlim_t)(next + atoi(argv[1])), (rlim_t)(next + atoi(argv[1])) };
    if (setrlimit(RLIMIT_NOFILE, &limit))
        skip("the number of descriptors cannot be limited here");
    int failed = 0;
    for (int launch = 1; launch <= 8; launch++) {
        failed += cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) != 0;
        if (launch % 4 == 0)
            failed += cuCtxSynchronize() != 0;
    }
    printf("failed=%d\n", failed);
    return failed;
}
