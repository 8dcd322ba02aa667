/* Captures 50 graphs of 20 kernels in global mode, while another thread keeps launching. Linked with -lcuda. */
#include "route.h"

#include <pthread.h>
#include <stdatomic.h>

static CUcontext context;
static CUfunction kernel;
static atomic_int over, failures;

static void *launches(void *stream)
{
    failures += cuCtxSetCurrent(context) != 0;
    while (!over)
        failures += cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) != 0;
    return NULL;
}

int main(void)
{
    CUmodule module;
    CUstream captured, other;
    pthread_t thread;
    CUresult (*count_nodes)(CUgraph, CUgraphNode *, size_t *) = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGraphGetNodes");
    failures += cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
                cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "k_1ms") ||
                cuStreamCreate(&captured, 1) || cuStreamCreate(&other, 1) ||
                pthread_create(&thread, NULL, launches, other);
    size_t captures = 0, spoilt = 0, beyond = 0, nodes = 0;
    for (; captures < 50; captures++, beyond += nodes - 20) {
        CUgraph graph = NULL;
        failures += cuStreamBeginCapture_v2(captured, 0) != 0;
        for (int i = 0; i < 20; i++)
            failures += cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, captured, NULL, NULL) != 0;
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL); /* the other thread has something to ask */
        spoilt += cuStreamEndCapture(captured, &graph) != 0 || !graph || count_nodes(graph, NULL, &nodes);
    }
    over = 1;
    pthread_join(thread, NULL);
    printf("captures=%zu\nspoilt=%zu\nbeyond=%zu\nfailures=%d\n", captures, spoilt, beyond, failures);
    return 0;
}
