/*
 * argv: FROM COUNT. Forks COUNT children, one after the other. FROM "fresh": the parent has not touched the driver, so
 * each child begins with it and takes LIMIT. FROM "busy": four threads of the parent get and free memory in the mean time, and
 * each child tries to: the driver is the parent's, and nothing may keep the child waiting. Counts the codes.
 */
#include "route.h"

#include <pthread.h>
#include <sys/wait.h>

static struct cuda cuda;
static CUcontext context;

static void *pound(void *unused)
{
    CUdeviceptr pointer;
    for (cuda.cuCtxSetCurrent(context);;)
        if (!cuda.cuMemAlloc_v2(&pointer, 1000))
            cuda.cuMemFree_v2(pointer);
    return unused;
}

static int fresh_child(void)
{
    CUdeviceptr pointer;
    if (cuda.cuInit(0) || cuda.cuDevicePrimaryCtxRetain(&context, 0) || cuda.cuCtxSetCurrent(context))
        return 1;
    return cuda.cuMemAlloc_v2(&pointer, LIMIT) || cuda.cuMemAlloc_v2(&pointer, 1) != 2;
}

/* 3 is CUDA_ERROR_NOT_INITIALIZED. */
static int busy_child(void)
{
    CUdeviceptr pointer = 12345;
    return cuda.cuMemAlloc_v2(&pointer, 1000) != 3 || cuda.cuMemFree_v2(12345) != 3 || cuda.cuInit(0) != 3 ||
           cuda.cuDevicePrimaryCtxRetain(&context, 0) != 3;
}

int main(int argc, char **argv)
{
    int fresh = argc == 3 && strcmp(argv[1], "fresh") == 0, wrong = 0, status;
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, library, name)
    cuda = (struct cuda){ CUDA_ROUTE(LOOK) };
    if (argc != 3 || (!fresh && (cuda.cuInit(0) || cuda.cuDevicePrimaryCtxRetain(&context, 0))))
        return 2;
    pthread_t thread;
    for (int i = 0; !fresh && i < 4; i++)
        pthread_create(&thread, NULL, pound, NULL);
    for (int i = 0; i < atoi(argv[2]); i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(fresh ? fresh_child() : busy_child());
        wrong += child < 0 || waitpid(child, &status, 0) < 0 || status != 0;
    }
    printf("wrong=%d\n", wrong);
    fflush(stdout);
    _exit(0);
}
