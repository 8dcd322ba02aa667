/* argv: WHEN. No further descriptor can be had: from before cuInit on ("early"), from a context on ("late"), or while
 * cuInit is called for the first time ("once"). */
#include "route.h"

#include <fcntl.h>
#include <sys/resource.h>

static struct rlimit before;

static void starve(void)
{
    int next = open("/dev/null", O_RDONLY);
    getrlimit(RLIMIT_NOFILE, &before);
    struct rlimit limit = { (rlim_t)next, before.rlim_max };
    close(next);
    if (setrlimit(RLIMIT_NOFILE, &limit) || open("/dev/null", O_RDONLY) >= 0)
        skip("the number of descriptors cannot be limited here");
}

int main(int argc, char **argv)
{
    int early = argc > 1 && strcmp(argv[1], "early") == 0, once = argc > 1 && strcmp(argv[1], "once") == 0;
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(dlsym, library, name)
    struct cuda cuda = { CUDA_ROUTE(LOOK) };
    CUcontext context;
    if (early || once)
        starve();
    CUresult result = cuda.cuInit(0);
    printf("init=%u\n", result);
    if (once) {
        setrlimit(RLIMIT_NOFILE, &before);
        result = cuda.cuInit(0);
        printf("again=%u\n", result);
    }
    if (result)
        return 0;
    if (cuda.cuDevicePrimaryCtxRetain(&context, 0) || cuda.cuCtxSetCurrent(context))
        return 1;
    if (!early && !once)
        starve();
    printf("over=%u\nsmall=%u\n", try_alloc(&cuda, LIMIT + 1), try_alloc(&cuda, LIMIT));
    return 0;
}
