/*
 * silent WAY MILLISECONDS TIMES [default|thread]: launches a function that takes 10 us so often, waits for each, and launches
 * it once more, so that it takes that long, in a stream of its own, or the default one of all threads, or of the thread. Then it makes no call until that has ended,
 * as one does who looks for a result in memory; and `exit`: ends without a wait, `again`: launches once more and waits,
 * `die`: is killed halfway, `atexit`: does all that once more in a function that the process runs as it ends. Linked with
 * -lcuda; with -DNO_THREADS -rdynamic no thread can be made.
 */
#include "route.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

static CUfunction kernel;
static CUstream stream;
static uint64_t length;
static int times;

static int launch(uint64_t ns)
{
    void *params[] = { &ns };
    return cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL) != 0;
}

static void rest(uint64_t ns)
{
    struct timespec time = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    while (nanosleep(&time, &time))
        ;
}

#ifdef NO_THREADS
/* As where the system allows no further thread; exported to all libraries. */
int pthread_create(void *thread, const void *attributes, void *(*start)(void *), void *argument)
{
    (void)thread, (void)attributes, (void)start, (void)argument;
    return EAGAIN;
}
#endif

static int work(void)
{
    for (int i = 0; i < times; i++)
        if (launch(10000) || cuCtxSynchronize())
            return 2;
    return launch(length) ? 3 : 0;
}

static void at_exit(void)
{
    rest(30000000);
    int failed = work();
    rest(length + 50000000);
    _exit(failed);
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    int is_late = argc > 1 && !strcmp(argv[1], "atexit");
    if (is_late)
        atexit(at_exit);
    if (argc < 4 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "spin_ns") ||
        (argc == 4 && cuStreamCreate(&stream, 1)))
        return 1;
    if (argc > 4 && !strcmp(argv[4], "thread"))
        stream = CU_STREAM_PER_THREAD;
    length = strtoull(argv[2], NULL, 10) * 1000000;
    times = atoi(argv[3]);
    if (is_late)
        return launch(10000) || cuCtxSynchronize();
    int failed = work();
    if (failed)
        return failed;
    if (!strcmp(argv[1], "die")) {
        rest(length / 2);
        raise(SIGKILL);
    }
    rest(length + 50000000);
    if (!strcmp(argv[1], "again") && (launch(10000) || cuCtxSynchronize()))
        return 4;
    _exit(0);
}
