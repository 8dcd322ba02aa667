/* argv: WAY. Eight threads get and free memory without pause; in the middle of it the process ends. */
#include "route.h"

#include <pthread.h>
#include <stdatomic.h>

static struct cuda cuda;
static CUcontext context;
static atomic_ulong rounds;

static void *pound(void *unused)
{
    CUdeviceptr pointer;
    for (cuda.cuCtxSetCurrent(context);; atomic_fetch_add(&rounds, 1))
        if (!cuda.cuMemAlloc_v2(&pointer, 1 << 20))
            cuda.cuMemFree_v2(pointer);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, library, name)
    cuda = (struct cuda){ CUDA_ROUTE(LOOK) };
    if (argc != 2 || cuda.cuInit(0) || cuda.cuDevicePrimaryCtxRetain(&context, 0))
        return 2;
    for (int i = 0; i < 8; i++)
        pthread_create(&thread, NULL, pound, NULL);
    while (atomic_load(&rounds) < 1000)
        sched_yield();
    if (strcmp(argv[1], "exit") == 0)
        exit(7);
    if (strcmp(argv[1], "quick_exit") == 0)
        quick_exit(7);
    if (strcmp(argv[1], "_exit") == 0)
        _exit(7);
    return 7;
}
