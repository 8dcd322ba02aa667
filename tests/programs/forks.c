/*
 * Launches, forks, and goes on launching in the parent; the child, whose driver refuses everything, launches too. Prints
 * the codes of both and ends with 0 if neither was held up for ever. Linked with -lcuda.
 */
#include "route.h"

#include <sys/wait.h>

int main(void)
{
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "k_1ms"))
        return 1;
    int status = 0;
    CUresult parent = 0, child = 0;
    for (int i = 0; i < 40 && !parent; i++)
        parent = cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    pid_t pid = fork();
    for (int i = 0; i < 40 && !parent; i++)
        parent = cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
    if (pid == 0)
        _exit((int)parent);
    waitpid(pid, &status, 0);
    child = WIFEXITED(status) ? (CUresult)WEXITSTATUS(status) : 1000;
    printf("parent=%u\nchild=%u\nwait=%u\n", parent, child, cuCtxSynchronize());
    return 0;
}
