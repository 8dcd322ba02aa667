/*
 * called_back WHAT: the driver calls a tool back while it is asked about an event behind a wait of the program. The tool
 * lets another thread destroy a stream, and once that thread waits for this one it uses the driver itself: it launches,
 * waits for or destroys an unused stream, or does nothing. Until it was called three times: the library's own thread may have
 * asked before. Linked with -lcuda.
 */
#include "route.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#define STREAMS 16

static CUcontext context;
static CUfunction kernel;
static CUstream streams[STREAMS], unused;
static atomic_int destroyer, asked, called, failures;
static _Thread_local int waits;
static const char *what;

static void *destroy(void *stream)
{
    destroyer = (int)syscall(SYS_gettid);
    while (!asked)
        sched_yield();
    failures += cuStreamDestroy_v2(stream) != 0;
    return NULL;
}

static int sleeps(int thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    int read = file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    if (file)
        fclose(file);
    return read && state == 'S';
}

static void tool(void)
{
    if (!waits || asked)
        return;
    asked = 1;
    called++;
    while (!sleeps(destroyer))
        sched_yield();
    if (!strcmp(what, "launch"))
        failures += cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, unused, NULL, NULL) != 0;
    else if (!strcmp(what, "wait"))
        failures += cuStreamSynchronize(unused) != 0;
    else if (!strcmp(what, "destroy"))
        failures += cuStreamDestroy_v2(unused) != 0;
}

static void run(int round)
{
    pthread_t thread;
    destroyer = asked = 0;
    failures += cuStreamCreate(&unused, 1) != 0;
    for (int i = 0; i < STREAMS; i++)
        failures += cuStreamCreate(&streams[i], 1) ||
                    cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, streams[i], NULL, NULL);
    failures += pthread_create(&thread, NULL, destroy, streams[round]) != 0;
    while (!destroyer)
        sched_yield();
    waits = 1;
    failures += cuCtxSynchronize() != 0;
    waits = 0;
    asked = 1; /* there was no callback: the other thread waits no more */
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    CUmodule module;
    void (*attach)(void (*)(void)) = some(dlsym(some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda"), "stubTool"), "stubTool");
    if (argc != 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "k_1ms") ||
        cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) || cuCtxSynchronize())
        return 1;
    what = argv[1];
    attach(tool);
    for (int round = 0; called < 3 && round < STREAMS; round++)
        run(round);
    printf("called=%d\nfailures=%d\n", called, failures);
    return failures;
}
