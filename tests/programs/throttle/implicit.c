/*
 * implicit COPY KERNELS [BETWEEN]: in each of four rounds, copies 400,000 bytes to the device in the stream COPY, launches
 * ten kernels of 100 us in KERNELS, and waits for all; if there is a third stream, launches one in that in between. Streams
 * are `default` of all threads, `own` of this thread, `other` of another one that then launches, `one` and `two` that wait
 * for the first of these. Before, waits for twenty kernels in each stream in which there will be some. Linked with -lcuda.
 */
#include "route.h"

#include <pthread.h>

enum { BYTES = 400000, ROUNDS = 4, KERNELS = 10, KNOWN = 20 };

static CUcontext context;
static CUfunction kernel;
static CUstream made[2];
static pthread_barrier_t turns;
static char source[BYTES];
static int failed;

static CUstream named(const char *name)
{
    if (!strcmp(name, "default"))
        return NULL;
    return !strcmp(name, "one") ? made[0] : !strcmp(name, "two") ? made[1] : CU_STREAM_PER_THREAD;
}

static void launch(const char *name, int times)
{
    uint64_t ns = 100000;
    void *params[] = { &ns };
    while (times--)
        failed |= cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, named(name), params, NULL) != 0;
}

/* Launches when it is its turn. */
static void *other(void *unused)
{
    failed |= cuCtxSetCurrent(context) != 0;
    for (int i = 0; i < ROUNDS + 1; i++) {
        pthread_barrier_wait(&turns);
        launch("other", i ? KERNELS : KNOWN);
        pthread_barrier_wait(&turns);
    }
    return unused;
}

static void launch_in(const char *name, int times)
{
    if (strcmp(name, "other")) {
        launch(name, times);
    } else {
        pthread_barrier_wait(&turns);
        pthread_barrier_wait(&turns);
    }
}

int main(int argc, char **argv)
{
    CUmodule module;
    CUdeviceptr memory;
    pthread_t thread;
    if (argc < 3 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "spin_ns") ||
        cuStreamCreate(&made[0], 0) || cuStreamCreate(&made[1], 0) || cuMemAlloc_v2(&memory, BYTES))
        return 1;
    const char *copy = argv[1], *kernels = argv[2], *between = argc > 3 ? argv[3] : NULL;
    int has_other = !strcmp(kernels, "other");
    if (has_other && (pthread_barrier_init(&turns, NULL, 2) || pthread_create(&thread, NULL, other, NULL)))
        return 2;
    launch_in(kernels, KNOWN);
    if (between)
        launch(between, KNOWN);
    failed |= cuCtxSynchronize() != 0;
    for (int i = 0; i < ROUNDS; i++) {
        failed |= cuMemcpyHtoDAsync_v2(memory, source, BYTES, named(copy)) != 0;
        if (between)
            launch(between, 1);
        launch_in(kernels, KERNELS);
        failed |= cuCtxSynchronize() != 0;
    }
    if (has_other)
        pthread_join(thread, NULL);
    return failed ? 3 : 0;
}
