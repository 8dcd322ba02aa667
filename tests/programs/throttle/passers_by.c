/*
 * passers_by THREADS: THREADS threads, one after the other, launch a kernel of 1 us in their own default stream, and end.
 * Prints how many bytes the heap has grown by since the first 500, which come before them. Linked with -lcuda.
 */
#include "route.h"

#include <malloc.h>
#include <pthread.h>

static CUcontext context;
static CUfunction kernel;
static int failures;

static void *launch(void *unused)
{
    failures += cuCtxSetCurrent(context) || cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, (CUstream)2, NULL, NULL);
    return unused;
}

static size_t heap_after(int threads)
{
    pthread_t thread;
    for (int i = 0; i < threads; i++)
        failures += pthread_create(&thread, NULL, launch, NULL) || pthread_join(thread, NULL);
    return mallinfo2().uordblks;
}

int main(int argc, char **argv)
{
    CUmodule module;
    if (argc != 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "k_1us"))
        return 1;
    size_t before = heap_after(500);
    size_t grown = heap_after(atoi(argv[1])) - before;
    failures += cuCtxSynchronize() != 0;
    printf("failures=%d\ngrown=%zu\n", failures, grown);
    return failures;
}
