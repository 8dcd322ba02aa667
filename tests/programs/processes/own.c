/*
 * What belongs to the program and not to the driver: its descriptors, threads, umask, directory, signals, and errno
 * after each call. The test compares the lines with those of a run without the shim.
 */
#include "route.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

static int entries(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    while (directory && readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void own(const char *when)
{
    char place[4096];
    mode_t mask = umask(0);
    sigset_t blocked;
    int handled = 0;
    umask(mask);
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int number = 1; number < 65; number++) {
        struct sigaction action = { 0 };
        if (!sigaction(number, NULL, &action))
            handled += (action.sa_handler != SIG_DFL) + 2 * sigismember(&blocked, number);
    }
    printf("%s: descriptors=%d threads=%d umask=%o place=%d signals=%d\n", when, entries("/proc/self/fd"),
           entries("/proc/self/task"), mask, getcwd(place, sizeof place) != NULL, handled);
}

#define TRY(call) (errno = 4242, (void)(call), printf("%s: errno=%d\n", #call, errno))

int main(void)
{
    CUcontext context = NULL;
    CUdeviceptr pointer = 0, none = 0;
    umask(0123);
    own("at first");
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    own("opened");
    TRY(dlsym(library, "cuInit"));
    TRY(dlsym(library, "cuMemAlloc_v2"));
    TRY(dlsym(RTLD_DEFAULT, "malloc"));
#define LOOK(name) BY(dlsym, library, name)
    struct cuda cuda = { CUDA_ROUTE(LOOK) };
    TRY(cuda.cuMemAlloc_v2(&none, 1));
    TRY(cuda.cuInit(0));
    own("initialised");
    TRY(cuda.cuDevicePrimaryCtxRetain(&context, 0));
    TRY(cuda.cuCtxSetCurrent(context));
    TRY(cuda.cuMemAlloc_v2(&pointer, 1000));
    TRY(cuda.cuMemAlloc_v2(&none, 100ul << 30)); /* more than there is, with the shim or without */
    TRY(cuda.cuMemFree_v2(pointer));
    TRY(cuda.cuMemFree_v2(12345));
    own("at last");
    return 0;
}
