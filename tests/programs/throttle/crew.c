/*
 * crew MODE MILLISECONDS: four threads launch kernels of the stub for so long by the card's clock, and wait now and then.
 * MODE own: each in its own default stream; one: all in the legacy default stream; churn: each in streams that it makes
 * and destroys. Prints failures, how long the kernels kept the card busy and how long it took. Linked with -lcuda.
 */
#include "route.h"

#include <pthread.h>
#include <stdatomic.h>

static CUcontext context;
static CUfunction kernel;
static atomic_int failures;
static uint64_t (*now)(void);
static uint64_t end;
static char mode;

static CUresult launch(CUstream stream)
{
    return (mode == 'o' ? cuLaunchKernel_ptsz : cuLaunchKernel)(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static void *work(void *unused)
{
    failures += cuCtxSetCurrent(context) != 0;
    while (now() < end) {
        CUstream stream = NULL;
        if (mode == 'c')
            failures += cuStreamCreate(&stream, 1) != 0;
        for (int i = 0; i < 6; i++)
            failures += launch(stream) != 0;
        if (mode == 'c')
            failures += cuStreamDestroy_v2(stream) != 0;
        else
            failures += (mode == 'o' ? cuStreamSynchronize_ptsz(NULL) : cuStreamSynchronize(NULL)) != 0;
    }
    return unused;
}

int main(int argc, char **argv)
{
    CUmodule module;
    pthread_t threads[4];
    void *stub = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    uint64_t (*busy_of)(unsigned int, unsigned int) = dlsym(stub, "stubBusyOf");
    now = (uint64_t(*)(void))some(dlsym(stub, "stubNow"), "stubNow");
    if (argc != 3 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "k_500us"))
        return 1;
    uint64_t start = now();
    mode = strcmp(argv[1], "one") ? argv[1][0] : 'l';
    end = start + strtoull(argv[2], NULL, 0) * 1000000;
    for (int i = 0; i < 4; i++)
        failures += pthread_create(&threads[i], NULL, work, NULL) != 0;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    failures += cuCtxSynchronize() != 0;
    printf("failures=%d\nbusy=%llu\nclock=%llu\n", failures, (unsigned long long)busy_of(0, (unsigned int)getpid()),
           (unsigned long long)(now() - start));
    return failures;
}
