/*
 * argv: BYTES [PROGRAM]. The first thread ends while another one holds BYTES, so that the process looks like a zombie
 * from outside. The other thread says so, and waits for the end of stdin; then it becomes PROGRAM, if there is one.
 */
#include "route.h"

#include <pthread.h>

static char **arguments;

static int leader_is_gone(void)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    FILE *file = fopen(path, "r");
    if (file) {
        size_t got = fread(text, 1, sizeof text - 1, file);
        text[got] = 0;
        fclose(file);
    }
    char *name_end = strrchr(text, ')');
    return name_end && name_end[2] == 'Z';
}

static void *stay(void *unused)
{
    char rest[64];
    CUcontext context;
    CUdeviceptr pointer;
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, library, name)
    struct cuda cuda = { CUDA_ROUTE(LOOK) };
    while (!leader_is_gone())
        sched_yield();
    printf("%u\n", cuda.cuInit(0) || cuda.cuDevicePrimaryCtxRetain(&context, 0) || cuda.cuCtxSetCurrent(context) ||
                       cuda.cuMemAlloc_v2(&pointer, strtoul(arguments[1], NULL, 10)));
    fflush(stdout);
    while (read(0, rest, 1) == 1 && rest[0] != '\n')
        continue;
    if (arguments[2])
        execv(arguments[2], arguments + 2);
    exit(0);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    arguments = argv;
    if (argc < 2 || pthread_create(&thread, NULL, stay, NULL))
        return 2;
    pthread_exit(NULL);
}
