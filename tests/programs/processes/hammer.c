/*
 * argv: THREADS ROUNDS LARGEST LIMIT FILE. Each thread gets and frees memory of varying size, as fast as it can, and
 * keeps count in FILE, which all such processes share, of what they hold together: counted after it was given, and
 * no longer counted before it is given back, so that the count can exceed LIMIT only if the limit was exceeded.
 */
#include "route.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

static struct cuda cuda;
static CUcontext context;
static unsigned long rounds, largest, limit;
static atomic_ulong *held;
static atomic_ulong over, refused, failed, done;

static void *pound(void *seed)
{
    unsigned long state = (unsigned long)seed * 2654435761u + (unsigned long)getpid();
    cuda.cuCtxSetCurrent(context);
    for (unsigned long round = 0; round < rounds; round++) {
        CUdeviceptr pointer;
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t bytes = (state >> 33) % largest + 1;
        CUresult result = cuda.cuMemAlloc_v2(&pointer, bytes);
        atomic_fetch_add(result == 2 ? &refused : result ? &failed : &done, 1);
        if (round % 500 == 499)
            puts("on"), fflush(stdout);
        if (result)
            continue;
        if (atomic_fetch_add(held, bytes) + bytes > limit)
            atomic_fetch_add(&over, 1);
        atomic_fetch_sub(held, bytes);
        if (cuda.cuMemFree_v2(pointer))
            atomic_fetch_add(&failed, 1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    pthread_t threads[64];
    unsigned long count = strtoul(argv[1], NULL, 10);
    rounds = strtoul(argv[2], NULL, 10), largest = strtoul(argv[3], NULL, 10), limit = strtoul(argv[4], NULL, 10);
    int file = open(argv[5], O_RDWR | O_CREAT, 0600);
    if (count > 64 || file < 0 || ftruncate(file, sizeof *held))
        return 2;
    held = mmap(NULL, sizeof *held, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, library, name)
    cuda = (struct cuda){ CUDA_ROUTE(LOOK) };
    getchar(); /* all begin at once */
    if (cuda.cuInit(0) || cuda.cuDevicePrimaryCtxRetain(&context, 0))
        return 1;
    puts("begun");
    fflush(stdout);
    for (unsigned long i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, pound, (void *)i);
    for (unsigned long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("over=%lu\nrefused=%lu\nfailed=%lu\ndone=%lu\n", over, refused, failed, done);
    return 0;
}
