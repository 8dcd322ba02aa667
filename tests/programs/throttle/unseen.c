/*
 * unseen WAY MILLISECONDS TIMES: launches a function that takes 10 us so often, waits for each, and launches it once more, so
 * that it takes that long. Then it hides that from who looks at the stream:
 *
 *   capture   another stream is captured at the same time
 *   destroy   the stream begins a capture itself, and is destroyed
 *   context   it is the default stream of another thread, in a context that ends when the kernel has
 *   restless  launches of 2 us follow, each 3 ms, until it is killed
 *   refused   launches follow that the driver refuses
 *   reset     another thread resets the primary context, and the process is killed before the end
 *   exit      all that is done in a function that the process runs as it ends, at once
 *   late      the same, when the library's thread has gone, and the kernel is the first one
 *   crowd     there are more streams than the library has places for
 *   calls     short ones in another stream are waited for, one after the other
 *   waited    it waits for the stream as soon as the kernel has ended, and not before
 *   ending    it is launched in a context while another thread destroys that, which waits for 50 ms of other work
 *   stops     it stops itself, and goes on when the kernel has ended; all of that four times
 *   delayed   the driver needs 40 ms to read its parameter
 *   slow      it takes 60 ms, and the process needs MILLISECONDS to end
 *
 * Linked with -lcuda -pthread.
 */
#include "route.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define STREAMS 1100

static CUcontext context;
static CUfunction kernel;
static CUstream stream;
static uint64_t length;
static int times;
static const char *way;

static int is(const char *name)
{
    return !strcmp(way, name);
}

static int grid(unsigned int blocks, uint64_t ns)
{
    void *params[] = { &ns };
    return cuLaunchKernel(kernel, blocks, 1, 1, 32, 1, 1, 0, stream, params, NULL) != 0;
}

static int launch(uint64_t ns)
{
    return grid(1, ns);
}

static void rest(uint64_t ns)
{
    struct timespec time = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    while (nanosleep(&time, &time))
        ;
}

static int begin(void)
{
    CUmodule module;
    return cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "spin_ns");
}

static int warm(void)
{
    for (int i = 0; i < times; i++)
        if (launch(10000) || cuStreamSynchronize(stream))
            return 1;
    return 0;
}

/* The parameters of the delayed launch, on a page that cannot be read at first. */
static void **page;

static void on_fault(int signal)
{
    (void)signal;
    rest(40000000);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static int delayed(void)
{
    struct sigaction action = { .sa_handler = on_fault };
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || sigaction(SIGSEGV, &action, NULL))
        return 1;
    page[0] = &length;
    mprotect(page, 4096, PROT_NONE);
    return cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, page, NULL) != 0;
}

static void *in_thread(void *argument)
{
    stream = CU_STREAM_PER_THREAD;
    if (cuCtxSetCurrent(context) || warm() || launch(length))
        exit(2);
    return argument;
}

static void *reset(void *argument)
{
    cuDevicePrimaryCtxReset(0);
    return argument;
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int waited(void)
{
    uint64_t end = now() + length + 300000;
    rest(length - 5000000);
    while (now() < end)
        ;
    return cuStreamSynchronize(stream) != 0;
}

static void *end_context(void *argument)
{
    return cuCtxDestroy(context) ? NULL : argument;
}

static int ending(void)
{
    pthread_t thread;
    CUstream own = stream;
    void *ended = NULL;
    if (cuStreamCreate(&stream, 1) || warm() || launch(50000000) ||
        pthread_create(&thread, NULL, end_context, context))
        return 1;
    rest(20000000);
    stream = own;
    return launch(length) || pthread_join(thread, &ended) || !ended;
}

/* Stops the process until another one, made for that, continues it. */
static int stop(void)
{
    pid_t own = getpid(), child = fork();
    if (child == 0) {
        rest(length + 20000000);
        kill(own, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    return child < 0 || waitpid(child, NULL, 0) != child;
}

static int stops(void)
{
    for (int i = 0; i < 4; i++)
        if (warm() || launch(length) || stop())
            return 1;
    rest(20000000); /* who ends at once may be sooner than the library's thread */
    return 0;
}

static void at_exit(void)
{
    if (is("slow"))
        rest(length);
    else if (launch(length))
        _exit(2);
    rest(length + 30000000);
    _exit(0);
}

static int hide(void)
{
    CUstream other;
    CUgraph graph;
    pthread_t thread;
    if (is("capture")) {
        if (cuStreamCreate(&other, 1) || cuStreamBeginCapture_v2(other, 0))
            return 3;
        rest(length + 30000000);
        return cuStreamEndCapture(other, &graph);
    }
    if (is("destroy") && (cuStreamBeginCapture_v2(stream, 0) || cuStreamDestroy_v2(stream)))
        return 4;
    if (is("calls")) {
        CUstream longs = stream;
        if (cuStreamCreate(&other, 1))
            return 9;
        stream = other;
        for (uint64_t ns = 0; ns < length; ns += 3000000) {
            if (launch(10000) || cuStreamSynchronize(stream))
                return 9;
            rest(3000000);
        }
        stream = longs;
        return 0;
    }
    for (uint64_t ns = 0; (is("restless") || is("refused")) && ns < length; ns += 3000000) {
        if (is("restless") ? launch(2000) : !grid(0, 2000))
            return 5;
        rest(3000000);
    }
    if (is("restless") || is("refused"))
        raise(SIGKILL);
    if (is("reset")) {
        if (pthread_create(&thread, NULL, reset, NULL))
            return 6;
        rest(length - 50000000);
        raise(SIGKILL);
    }
    rest(length + 30000000);
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc < 4)
        return 1;
    way = argv[1];
    length = strtoull(argv[2], NULL, 10) * 1000000;
    times = atoi(argv[3]);
    if (is("exit") || is("late") || is("slow"))
        atexit(at_exit);
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    if (is("context")) {
        if (cuCtxCreate(&context, 0, 0) || begin() || pthread_create(&thread, NULL, in_thread, NULL) ||
            pthread_join(thread, NULL))
            return 1;
        rest(length - 30000000);
        if (cuCtxDestroy(context))
            return 7;
        _exit(0);
    }
    if (is("ending") && cuCtxCreate(&context, 0, 0))
        return 1;
    if (begin() || cuStreamCreate(&stream, 1))
        return 1;
    for (int i = 0; is("crowd") && i < STREAMS; i++)
        if (cuStreamCreate(&stream, 1) || launch(1000))
            return 8;
    if (warm())
        return 2;
    if (is("late"))
        rest(1300000000);
    if (is("exit") || is("late"))
        return 0;
    if (is("slow"))
        return launch(60000000);
    if (is("ending") || is("stops"))
        _exit(is("ending") ? ending() : stops());
    if (is("delayed") ? delayed() : launch(length))
        return 3;
    int failed = is("waited") ? waited() : hide();
    _exit(failed);
}
