/* Frees in the last places where code of a process runs: thread-local destructor, atexit, library destructor. */
#include "route.h"

#include <pthread.h>

static struct cuda cuda;
static CUcontext context;
static CUdeviceptr pointers[3];
static pthread_key_t key;
static CUcontext context;

static void release(int which)
{
    CUresult result = cuda.cuMemFree_v2(pointers[which]);
    printf("free%d=%u\n", which, result);
    fflush(stdout);
}

static void thread_ends(void *unused) { (void)unused, release(0); }
static void program_ends(void) { release(1); }
__attribute__((destructor)) static void library_ends(void) { release(2); }

static void *thread(void *unused)
{
    cuda.cuCtxSetCurrent(context);
    cuda.cuCtxSetCurrent(context);
    pthread_setspecific(key, "set");
    return unused;
}

int main(void)
{
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, library, name)
    cuda = (struct cuda){ CUDA_ROUTE(LOOK) };
    if (cuda.cuInit(0) || cuda.cuDevicePrimaryCtxRetain(&context, 0) || cuda.cuCtxSetCurrent(context))
        return 1;
    for (int i = 0; i < 3; i++)
        if (cuda.cuMemAlloc_v2(&pointers[i], 1 << 20))
            return 1;
    atexit(program_ends);
    pthread_t other;
    pthread_key_create(&key, thread_ends);
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    return 0;
}
