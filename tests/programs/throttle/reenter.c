/*
 * reenter WHAT: the driver calls a tool back while a lock may be held around its call, and the tool does on the same
 * thread what would take that lock again: it launches in a stream that is known, gets and lets go of a context, or makes
 * physical memory. `keep` makes memory and keeps it, `export` lets a file keep memory that the program then releases, `work`
 * launches in another stream. Linked with -lcuda.
 */
#include "route.h"

#define MEMORY ((size_t)1 << 30)

static CUcontext context;
static CUfunction kernel, work;
static CUstream own;
static CUmemGenericAllocationHandle shared;
static CUmemAllocationProp pinned = { .type = 1, .requestedHandleTypes = 1, .location = { .type = 1 } };
static int called, failures, kept;
static _Thread_local int armed; /* not in the library's own thread, which asks again for what the tool launches */
static const char *what;

static int launch(void)
{
    return cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

/* In the tool, `shared` gets a file that keeps it. */
static void export(void)
{
    CUmemGenericAllocationHandle other = 0;
    int file = -1;
    if (shared)
        failures += cuMemExportToShareableHandle(&file, shared, 1, 0) != 0;
    else if (!cuMemCreate(&shared, MEMORY, &pinned, 0)) {
        failures += cuMemCreate(&other, 2 << 20, &pinned, 0) || cuMemRelease(other);
        other = shared;
        shared = 0;
        failures += cuMemRelease(other) != 0;
        kept++;
    }
}

static void get_and_let_go(void)
{
    CUmemGenericAllocationHandle memory = 0;
    CUcontext again;
    if (!strcmp(what, "launch"))
        failures += launch() != 0;
    else if (!strcmp(what, "work"))
        failures += cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, own, NULL, NULL) != 0;
    else if (!strcmp(what, "export"))
        export();
    else if (!strcmp(what, "keep"))
        kept += !cuMemCreate(&memory, MEMORY, &pinned, 0);
    else if (!strcmp(what, "context"))
        failures += cuDevicePrimaryCtxRetain(&again, 0) || cuDevicePrimaryCtxRelease_v2(0);
    else
        failures += cuMemCreate(&memory, 2 << 20, &pinned, 0) || cuMemRelease(memory);
}

static void tool(void)
{
    if (!armed || (!shared && !strcmp(what, "export")))
        return; /* it has called the driver itself */
    armed = 0;
    called++;
    get_and_let_go();
    armed = 1;
}

int main(int argc, char **argv)
{
    CUmodule module;
    void (*attach)(void (*)(void)) = some(dlsym(some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda"), "stubTool"), "stubTool");
    if (argc != 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&kernel, module, "k_10us") ||
        cuModuleGetFunction(&work, module, "k_10ms") || cuStreamCreate(&own, 1))
        return 1;
    what = argv[1];
    attach(tool);
    for (int round = 0; round < 3; round++) {
        failures += launch() != 0;
        armed = 1;
        failures += cuCtxSynchronize() != 0;
        if (strcmp(what, "launch"))
            get_and_let_go();
        armed = 0;
    }
    printf("called=%d\nfailures=%d\nkept=%d\n", called, failures, kept);
    return failures;
}
