/*
 * stopped MILLISECONDS TOTAL [blind | KERNEL]: until TOTAL milliseconds have passed, has one child after the other launch a function
 * that takes 10 us six times, wait for each, launch it once more so that it takes MILLISECONDS, and stop itself. The child is
 * killed when that is over: neither the library in it nor any later process has seen it. `blind`: from
 * its cuInit on a child has the root directory /elsewhere, and once it has a stream it can open no file; one whose launches
 * are not admitted ends after two seconds. With KERNEL, which takes that long, a child launches that at once and nothing else,
 * and ends after two seconds if that is not admitted. Prints what the GPU did, as `busy`,
 * and what has passed, as `clock`, in ns. Linked with -lcuda.
 */
#include "route.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int child(uint64_t length, int is_blind, const char *name)
{
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUstream stream;
    uint64_t ns = 10000;
    void *params[] = { &ns };
    if (cuInit(0) || (is_blind && chroot("/elsewhere")) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)
        || cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, name ? name : "spin_ns")
        || cuStreamCreate(&stream, 1))
        return 1;
    if ((is_blind || name) && alarm(2))
        return 1;
    if (is_blind && setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, 0 }))
        return 1;
    for (int i = 0; i < 6 && !name; i++)
        if (cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL) || cuStreamSynchronize(stream))
            return 1;
    ns = length;
    if (cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL))
        return 1;
    raise(SIGSTOP);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    uint64_t length = strtoull(argv[1], NULL, 10) * 1000000, total = strtoull(argv[2], NULL, 10) * 1000000;
    int is_blind = argc > 3 && !strcmp(argv[3], "blind");
    uint64_t began = now(), busy = 0;
    while (now() - began < total) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(child(length, is_blind, argc > 3 && !is_blind ? argv[3] : NULL));
        int status;
        if (waitpid(pid, &status, WUNTRACED) != pid)
            return 1;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
            continue;
        if (!WIFSTOPPED(status))
            return 1;
        struct timespec rest = { (time_t)(length / 1000000000), (long)(length % 1000000000) };
        nanosleep(&rest, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        busy += length;
    }
    printf("busy=%llu\nclock=%llu\n", (unsigned long long)busy, (unsigned long long)(now() - began));
    return 0;
}
