/* cramped WHAT: a call with a list of 64 MiB ("batch": three of them) while the address space has room for one copy of a
 * list, and not for two. Prints what the call answered, and what an allocation answers after it. Linked with -lcuda. */
#include "route.h"

#include <sys/mman.h>
#include <sys/resource.h>

#define LIST ((size_t)64 << 20)

static size_t mapped(void)
{
    size_t pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (!statm || fscanf(statm, "%zu", &pages) != 1)
        skip("the size of the address space cannot be read here");
    fclose(statm);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void *zeros(void)
{
    void *list = mmap(NULL, LIST, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return list == MAP_FAILED ? NULL : list;
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUdeviceptr pointer = 0;
    void *library = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    const char *name = argc > 1 && strcmp(argv[1], "batch") == 0 ? "cuMemcpyBatchAsync_v2" : "cuMemMapArrayAsync";
    void *call = some(dlsym(library, name), name), *list = some(zeros(), "no list");
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuMemAlloc_v2(&pointer, 4096))
        return 1;
    struct rlimit before, limit;
    getrlimit(RLIMIT_AS, &before);
    limit = (struct rlimit){ mapped() + LIST + LIST / 2, before.rlim_max };
    if (setrlimit(RLIMIT_AS, &limit))
        skip("the address space cannot be limited here");
    CUresult result;
    if (name[5] == 'c')
        result = ((CUresult(*)(void *, void *, void *, size_t, void *, void *, size_t, CUstream))call)(
            list, list, list, LIST / 8, NULL, NULL, 0, NULL);
    else
        result = ((CUresult(*)(void *, unsigned int, CUstream))call)(list, LIST / 96, NULL);
    setrlimit(RLIMIT_AS, &before);
    printf("answer=%u\nafter=%u\n", result, cuMemAlloc_v2(&pointer, 4096));
    return 0;
}
