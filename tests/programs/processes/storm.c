/*
 * argv: THREADS CHUNK. All threads begin with the driver at once, each on its own: cuInit, context. Then, after a line
 * of stdin, each takes CHUNK bytes again and again until it is refused, in one of three ways, and keeps them until the
 * end of stdin.
 */
#include "route.h"

#include <pthread.h>
#include <stdatomic.h>

static cuMemAllocAsync_fn alloc_async;
static cuArrayCreate_v2_fn array_create;
static struct cuda cuda;
static pthread_barrier_t barrier;
static size_t chunk;
static atomic_ulong granted, failed;

static CUresult take(long way)
{
    CUdeviceptr pointer;
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR form = { .Width = chunk, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1 };
    return way == 0 ? cuda.cuMemAlloc_v2(&pointer, chunk)
           : way == 1 ? alloc_async(&pointer, chunk, NULL) : array_create(&array, &form);
}

static void *rush(void *number)
{
    CUcontext context;
    CUresult result;
    pthread_barrier_wait(&barrier);
    if (cuda.cuInit(0) || cuda.cuDevicePrimaryCtxRetain(&context, 0) || cuda.cuCtxSetCurrent(context))
        atomic_fetch_add(&failed, 1);
    pthread_barrier_wait(&barrier); /* all have begun */
    pthread_barrier_wait(&barrier); /* all may take */
    while (!(result = take((long)number % 3)))
        atomic_fetch_add(&granted, 1);
    if (result != 2)
        atomic_fetch_add(&failed, 1);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void wait_for_line(void)
{
    for (int byte = getchar(); byte != '\n' && byte != EOF; byte = getchar())
        continue;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 3)
        return 2;
    unsigned int count = (unsigned int)atoi(argv[1]);
    chunk = strtoul(argv[2], NULL, 10);
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, library, name)
    cuda = (struct cuda){ CUDA_ROUTE(LOOK) };
    alloc_async = (cuMemAllocAsync_fn)some(dlsym(library, "cuMemAllocAsync"), "cuMemAllocAsync");
    array_create = (cuArrayCreate_v2_fn)some(dlsym(library, "cuArrayCreate_v2"), "cuArrayCreate_v2");
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (long i = 0; i < (long)count; i++)
        if (pthread_create(&thread, NULL, rush, (void *)i))
            return 2;
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    printf("%lu 0 0\n", failed);
    fflush(stdout);
    wait_for_line();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    printf("%lu %lu 0\n", failed, granted);
    fflush(stdout);
    wait_for_line();
    return 0;
}
