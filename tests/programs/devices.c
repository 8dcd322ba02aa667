/*
 * devices KERNEL COLLECTIVE MILLISECONDS: two threads, each with a device of its own, launch four kernels of the stub
 * and wait for them, for so long by the card's clock. Unless COLLECTIVE is `-`, a kernel of that name follows the four;
 * nothing on the stub's devices waits for the other one's. Prints failures, and how long each device was busy for how
 * long; the first quarter is not counted. Linked with -lcuda.
 */
#include "route.h"

#include <pthread.h>
#include <stdatomic.h>

static const char *names[2];
static atomic_int failures;
static uint64_t start, length;
static uint64_t (*now)(void);
static uint64_t (*busy_of)(unsigned int, unsigned int);

struct card {
    int number;
    uint64_t busy, clock;
};

static void *work(void *argument)
{
    struct card *card = argument;
    CUcontext context;
    CUmodule module;
    CUfunction kernel, collective = NULL;
    uint64_t begun = 0, busy = 0;
    failures += cuDevicePrimaryCtxRetain(&context, card->number) || cuCtxSetCurrent(context) ||
                cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, names[0]);
    if (*names[1] != '-')
        failures += cuModuleGetFunction(&collective, module, names[1]) != 0;
    for (uint64_t time = start; time < start + length; time = now()) {
        if (!begun && time > start + length / 4) {
            begun = time;
            busy = busy_of((unsigned int)card->number, (unsigned int)getpid());
        }
        for (int i = 0; i < 4; i++)
            failures += cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) != 0;
        if (collective)
            failures += cuLaunchKernel(collective, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) != 0;
        failures += cuCtxSynchronize() != 0;
    }
    card->busy = busy_of((unsigned int)card->number, (unsigned int)getpid()) - busy;
    card->clock = now() - begun;
    return NULL;
}

int main(int argc, char **argv)
{
    struct card cards[2] = {{.number = 0}, {.number = 1}};
    pthread_t threads[2];
    void *stub = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    now = (uint64_t(*)(void))some(dlsym(stub, "stubNow"), "stubNow");
    busy_of = (uint64_t(*)(unsigned int, unsigned int))some(dlsym(stub, "stubBusyOf"), "stubBusyOf");
    if (argc != 4 || cuInit(0))
        return 1;
    names[0] = argv[1];
    names[1] = argv[2];
    length = strtoull(argv[3], NULL, 0) * 1000000;
    start = now();
    for (int i = 0; i < 2; i++)
        failures += pthread_create(&threads[i], NULL, work, &cards[i]) != 0;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("failures=%d\n", failures);
    for (int i = 0; i < 2; i++)
        printf("busy%d=%llu\nclock%d=%llu\n", i, (unsigned long long)cards[i].busy, i,
               (unsigned long long)cards[i].clock);
    return failures != 0;
}
