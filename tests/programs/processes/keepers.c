/*
 * argv: ROUNDS LARGEST. The card's default pool keeps all that it gets. One thread gets and frees memory of varying
 * size from it, another one ordinary memory. Counts what was given and refused, each way.
 */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define USED(X) \
    X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuDeviceGetDefaultMemPool) X(cuMemPoolSetAttribute) \
    X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemAllocAsync) X(cuMemFreeAsync)
#define POINTER(name) static name##_fn call_##name;
USED(POINTER)

static CUcontext context;
static unsigned long rounds, largest;
static unsigned long done[2], refused[2], failed[2];

static void *pound(void *way)
{
    long pooled = (long)way;
    unsigned long state = (unsigned long)getpid() * 2654435761u + (unsigned long)pooled;
    call_cuCtxSetCurrent(context);
    for (unsigned long round = 0; round < rounds; round++) {
        CUdeviceptr pointer;
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t bytes = (state >> 33) % largest + 1;
        CUresult result = pooled ? call_cuMemAllocAsync(&pointer, bytes, NULL) : call_cuMemAlloc_v2(&pointer, bytes);
        *(result == 2 ? &refused[pooled] : result ? &failed[pooled] : &done[pooled]) += 1;
        if (!result && (pooled ? call_cuMemFreeAsync(pointer, NULL) : call_cuMemFree_v2(pointer)))
            failed[pooled]++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    CUmemoryPool pool;
    uint64_t all = UINT64_MAX;
    if (argc != 3)
        return 2;
    rounds = strtoul(argv[1], NULL, 10), largest = strtoul(argv[2], NULL, 10);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name) if (!library || !(call_##name = (name##_fn)dlsym(library, #name))) return 3;
    USED(FIND)
    if (call_cuInit(0) || call_cuDevicePrimaryCtxRetain(&context, 0) || call_cuCtxSetCurrent(context) ||
        call_cuDeviceGetDefaultMemPool(&pool, 0) ||
        call_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all))
        return 1;
    for (long way = 0; way < 2; way++)
        pthread_create(&threads[way], NULL, pound, (void *)way);
    for (int way = 0; way < 2; way++)
        pthread_join(threads[way], NULL);
    printf("plain=%lu\npooled=%lu\nrefused=%lu\nfailed=%lu\n", done[0], done[1], refused[0] + refused[1],
           failed[0] + failed[1]);
    return 0;
}
