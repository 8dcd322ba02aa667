/*
 * argv: WAY HELD LEFT. Holds HELD bytes and starts itself again in the given way; that process can have LEFT bytes and
 * not one more. What the parent holds it still holds afterwards.
 */
#include "route.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static struct cuda cuda;

static int begin(void)
{
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, library, name)
    cuda = (struct cuda){ CUDA_ROUTE(LOOK) };
    CUcontext context;
    return cuda.cuInit(0) || cuda.cuDevicePrimaryCtxRetain(&context, 0) || cuda.cuCtxSetCurrent(context);
}

static void try(const char *who, size_t bytes)
{
    printf("%s_over=%u\n", who, try_alloc(&cuda, bytes + 1));
    printf("%s_fits=%u\n", who, try_alloc(&cuda, bytes));
    fflush(stdout);
}

static int spawn(const char *way, char **child)
{
    int status = -1;
    pid_t pid = -1;
    if (strcmp(way, "system") == 0) {
        char command[8192];
        snprintf(command, sizeof command, "%s child 0 %s", child[0], child[3]);
        return system(command);
    }
    if (strcmp(way, "posix_spawn") == 0 && posix_spawn(&pid, child[0], NULL, NULL, child, environ))
        return -1;
    if (strcmp(way, "vfork") == 0 && (pid = vfork()) == 0) {
        execv(child[0], child);
        _exit(127);
    }
    if (strcmp(way, "fork") == 0 && (pid = fork()) == 0) {
        execv(child[0], child);
        _exit(127);
    }
    return waitpid(pid, &status, 0) < 0 ? -1 : status;
}

int main(int argc, char **argv)
{
    char self[4096] = "";
    CUdeviceptr held;
    if (argc != 4 || readlink("/proc/self/exe", self, sizeof self - 1) < 0 || begin())
        return 2;
    size_t left = strtoul(argv[3], NULL, 10);
    if (strcmp(argv[1], "child") == 0)
        return try("child", left), 0;
    if (cuda.cuMemAlloc_v2(&held, strtoul(argv[2], NULL, 10)))
        return 3;
    char *child[] = { self, "child", "0", argv[3], NULL };
    printf("status=%d\n", spawn(argv[1], child));
    try("parent", left);
    return 0;
}
