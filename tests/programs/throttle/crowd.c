/*
 * crowd PROCESSES MILLISECONDS [PROGRAM]: PROCESSES children each have a context and do nothing, or execute PROGRAM with 60 for its
 * argument, until this process has launched for MILLISECONDS a kernel of 100 us of which one launch in a hundred takes 12.8 ms.
 * The first half is not counted.
 * Prints how long the work kept the card busy, and how long that took by the card's clock. Linked with -lcuda.
 */
#include "route.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static CUcontext context;

static int begin(void)
{
    return cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);
}

static int child(int ready, char *program)
{
    char failed = (char)begin();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || write(ready, &failed, 1) != 1 || failed)
        return 1;
    if (program)
        execlp(program, program, "60", NULL);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    int pipes[2], failed = argc < 3 || pipe(pipes);
    for (int i = 0; !failed && i < atoi(argv[1]); i++)
        if (fork() == 0)
            _exit(child(pipes[1], argc > 3 ? argv[3] : NULL));
    for (int i = 0; !failed && i < atoi(argv[1]); i++) {
        char one = 1;
        failed = read(pipes[0], &one, 1) != 1 || one;
    }
    void *stub = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    uint64_t (*now)(void) = (uint64_t(*)(void))some(dlsym(stub, "stubNow"), "stubNow");
    uint64_t (*busy_of)(unsigned int, unsigned int) = dlsym(stub, "stubBusyOf");
    CUmodule module;
    CUfunction kernel;
    if (failed || begin() || cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "spin_ns"))
        return 1;
    uint64_t length = strtoull(argv[2], NULL, 0) * 1000000, start = now(), begun = 0, busy = 0;
    for (uint64_t count = 0, time = start; !failed && time < start + length; time = now()) {
        if (!begun && time > start + length / 2) {
            begun = time;
            busy = busy_of(0, (unsigned int)getpid());
        }
        uint64_t ns = count++ % 100 ? 100000 : 12800000;
        void *params[] = { &ns };
        failed = cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
    }
    failed = failed || cuCtxSynchronize();
    printf("failed=%d\nbusy=%llu\nclock=%llu\n", failed, (unsigned long long)(busy_of(0, (unsigned int)getpid()) - busy),
           (unsigned long long)(now() - begun));
    return failed;
}
