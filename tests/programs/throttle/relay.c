/*
 * relay ROUNDS THREADS LAUNCHES: in each round THREADS threads begin, launch a kernel of 50 us LAUNCHES times each in the
 * one stream that all share, and end. Prints failures and how long the kernels kept the card busy. Linked with -lcuda.
 */
#include "route.h"

#include <pthread.h>
#include <stdatomic.h>

static CUcontext context;
static CUfunction kernel;
static CUstream stream;
static atomic_int failures;
static int launches;

static void *work(void *unused)
{
    failures += cuCtxSetCurrent(context) != 0;
    for (int i = 0; i < launches; i++)
        failures += cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) != 0;
    return unused;
}

int main(int argc, char **argv)
{
    CUmodule module;
    pthread_t threads[16];
    void *stub = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    uint64_t (*busy_of)(unsigned int, unsigned int) = dlsym(stub, "stubBusyOf");
    if (argc != 4 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "k_50us") ||
        cuStreamCreate(&stream, 1))
        return 1;
    int rounds = atoi(argv[1]), count = atoi(argv[2]);
    launches = atoi(argv[3]);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++)
            failures += pthread_create(&threads[i], NULL, work, NULL) != 0;
        for (int i = 0; i < count; i++)
            pthread_join(threads[i], NULL);
    }
    failures += cuCtxSynchronize() != 0;
    printf("failures=%d\nbusy=%llu\n", failures, (unsigned long long)busy_of(0, (unsigned int)getpid()));
    return failures;
}
