/*
 * forks [before]: a process launches, forks and goes on launching; its child, whose driver refuses everything, launches
 * too. With `before` they part before there is a driver, and each has its own. Prints the codes of both, and ends if
 * neither is held up for ever. Linked with -lcuda.
 */
#include "route.h"

#include <sys/wait.h>

static CUfunction kernel;

static CUresult begin(void)
{
    CUcontext context;
    CUmodule module;
    return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
           cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "k_1ms");
}

static CUresult launches(void)
{
    CUresult result = 0;
    for (int i = 0; i < 40 && !result; i++)
        result = cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    return result;
}

int main(int argc, char **argv)
{
    (void)argv;
    int before = argc > 1, status = 0;
    if (!before && (begin() || launches()))
        return 1;
    pid_t pid = fork();
    CUresult own = before ? begin() : 0;
    own = own ? own : launches();
    if (pid == 0)
        _exit((int)(own ? own : cuCtxSynchronize()));
    waitpid(pid, &status, 0);
    printf("parent=%u\nchild=%d\nwait=%u\n", own, WIFEXITED(status) ? WEXITSTATUS(status) : 1000, cuCtxSynchronize());
    return 0;
}
