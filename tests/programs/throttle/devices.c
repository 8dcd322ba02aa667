/*
 * devices KERNEL COLLECTIVE MILLISECONDS [GRAPHS [FIRST]]: a thread for each device that is visible, two at most, launches
 * four kernels of the stub and waits for them, for so long by the card's clock. Unless COLLECTIVE is `-`, a kernel of that
 * name follows the four; nothing on the stub's devices waits for the other one's. With GRAPHS the five are launched as a
 * graph, with 2 as one that lies in another one. Prints failures, and how long each device was busy for how long; the
 * first quarter is not counted. FIRST is which card the first device is. Linked with -lcuda.
 */
#include "route.h"

#include <pthread.h>
#include <stdatomic.h>

static const char *names[2];
static int graphs;
static atomic_int failures;
static uint64_t start, length;
static uint64_t (*now)(void);
static uint64_t (*busy_of)(unsigned int, unsigned int);

struct card {
    int device;
    unsigned int number;
    uint64_t busy, clock;
};

static CUresult round_of(CUfunction kernel, CUfunction collective, CUstream stream)
{
    CUresult result = 0;
    for (int i = 0; i < 4 && !result; i++)
        result = cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
    return result || !collective ? result : cuLaunchKernel(collective, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static CUresult record(CUgraphExec *exec, CUfunction kernel, CUfunction collective)
{
    CUgraph graph, outer;
    CUgraphNode node;
    CUstream stream;
    CUresult result = cuStreamCreate(&stream, 1) || cuStreamBeginCapture_v2(stream, 2) ||
                      round_of(kernel, collective, stream) || cuStreamEndCapture(stream, &graph);
    if (!result && graphs == 2) {
        result = cuGraphCreate(&outer, 0) || cuGraphAddChildGraphNode(&node, outer, NULL, 0, graph);
        graph = outer;
    }
    return result || cuGraphInstantiateWithFlags(exec, graph, 0);
}

static void *work(void *argument)
{
    struct card *card = argument;
    CUcontext context;
    CUmodule module;
    CUfunction kernel, collective = NULL;
    CUgraphExec exec = NULL;
    uint64_t begun = 0, busy = 0;
    failures += cuDevicePrimaryCtxRetain(&context, card->device) || cuCtxSetCurrent(context) ||
                cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, names[0]);
    if (*names[1] != '-')
        failures += cuModuleGetFunction(&collective, module, names[1]) != 0;
    if (graphs)
        failures += record(&exec, kernel, collective) != 0;
    for (uint64_t time = start; time < start + length; time = now()) {
        if (!begun && time > start + length / 4) {
            begun = time;
            busy = busy_of(card->number, (unsigned int)getpid());
        }
        failures += (exec ? cuGraphLaunch(exec, NULL) : round_of(kernel, collective, NULL)) != 0;
        failures += cuCtxSynchronize() != 0;
    }
    card->busy = busy_of(card->number, (unsigned int)getpid()) - busy;
    card->clock = now() - begun;
    return NULL;
}

int main(int argc, char **argv)
{
    struct card cards[2] = { { 0 } };
    pthread_t threads[2];
    int count;
    void *stub = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    now = (uint64_t(*)(void))some(dlsym(stub, "stubNow"), "stubNow");
    busy_of = (uint64_t(*)(unsigned int, unsigned int))some(dlsym(stub, "stubBusyOf"), "stubBusyOf");
    if (argc < 4 || cuInit(0) || cuDeviceGetCount(&count) || count > 2)
        return 1;
    names[0] = argv[1];
    names[1] = argv[2];
    length = strtoull(argv[3], NULL, 0) * 1000000;
    graphs = argc > 4 ? atoi(argv[4]) : 0;
    start = now();
    for (int i = 0; i < count; i++) {
        cards[i].device = i;
        cards[i].number = (unsigned int)(i + (argc > 5 ? atoi(argv[5]) : 0));
        failures += pthread_create(&threads[i], NULL, work, &cards[i]) != 0;
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("failures=%d\n", failures);
    for (int i = 0; i < count; i++)
        printf("busy%u=%llu\nclock%u=%llu\n", cards[i].number, (unsigned long long)cards[i].busy, cards[i].number,
               (unsigned long long)cards[i].clock);
    return failures != 0;
}
