/* A thread is cancelled while it is refused memory; then another thread allocates. */
#include "route.h"

#include <pthread.h>

static struct cuda cuda;
static CUcontext context;

static void *be_cancelled(void *none)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    cuda.cuCtxSetCurrent(context);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    printf("over=%u\n", try_alloc(&cuda, LIMIT + 1));
    pthread_testcancel();
    return none;
}

int main(void)
{
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, library, name)
    cuda = (struct cuda){ CUDA_ROUTE(LOOK) };
    if (cuda.cuInit(0) || cuda.cuDevicePrimaryCtxRetain(&context, 0) || cuda.cuCtxSetCurrent(context))
        return 1;
    setvbuf(stdout, NULL, _IOFBF, BUFSIZ); /* so that printing is no point at which a thread can be cancelled */
    pthread_t thread;
    void *end = NULL;
    if (pthread_create(&thread, NULL, be_cancelled, NULL) || pthread_join(thread, &end))
        return 1;
    printf("cancelled=%d\nsmall=%u\n", end == PTHREAD_CANCELED, try_alloc(&cuda, 1 << 20));
    return 0;
}
