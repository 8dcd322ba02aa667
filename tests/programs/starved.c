/* argv: WHEN. No further descriptor can be had: from before cuInit on ("early"), or from a context on ("late"). */
#include "route.h"

#include <fcntl.h>
#include <sys/resource.h>

static void starve(void)
{
    int next = open("/dev/null", O_RDONLY);
    struct rlimit limit = { (rlim_t)next, (rlim_t)next };
    close(next);
    if (setrlimit(RLIMIT_NOFILE, &limit) || open("/dev/null", O_RDONLY) >= 0)
        skip("the number of descriptors cannot be limited here");
}

int main(int argc, char **argv)
{
    int early = argc > 1 && strcmp(argv[1], "early") == 0;
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, library, name)
    struct cuda cuda = { CUDA_ROUTE(LOOK) };
    CUcontext context;
    if (early)
        starve();
    CUresult result = cuda.cuInit(0);
    printf("init=%u\n", result);
    if (result)
        return 0;
    if (cuda.cuDevicePrimaryCtxRetain(&context, 0) || cuda.cuCtxSetCurrent(context))
        return 1;
    if (!early)
        starve();
    printf("over=%u\nsmall=%u\n", try_alloc(&cuda, CAP + 1), try_alloc(&cuda, CAP));
    return 0;
}
