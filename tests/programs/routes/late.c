/*
 * late SHIM HOW: opens the driver, then SHIM, while a thread is there already: `open`, in a `namespace` of its own,
 * `twice` (a copy of it before), or behind copies of the library HOW, until the loader has no static memory of threads
 * for one more. Then the driver is looked up, and used by the first thread, by the one that was there before and by one
 * that comes after.
 */
#include "route.h"

#include <pthread.h>
#include <stdatomic.h>

static struct cuda cuda;
static cuLaunchKernel_fn launch_kernel;
static CUcontext context;
static CUfunction kernel;
static pthread_barrier_t loaded;
static atomic_int failures;

static void *launch(void *early)
{
    if (early)
        pthread_barrier_wait(&loaded);
    if (cuda.cuCtxSetCurrent(context) || launch_kernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL))
        failures++;
    return NULL;
}

/* Since the loader opens each file once. */
static void *open_copy(const char *library, int number)
{
    char command[4096], name[64];
    snprintf(name, sizeof name, "./copy-%d.so", number);
    snprintf(command, sizeof command, "cp %s %s", library, name);
    return system(command) ? NULL : dlopen(name, RTLD_NOW);
}

static void take_all(const char *greedy)
{
    int copies = 0;
    while (open_copy(greedy, copies))
        copies++;
    const char *why = dlerror();
    printf("full=%d\n", copies > 0 && why && strstr(why, "static TLS") != NULL);
}

int main(int argc, char **argv)
{
    CUmodule module;
    pthread_t threads[2];
    void *driver = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    if (argc != 3 || pthread_barrier_init(&loaded, NULL, 2) || pthread_create(&threads[0], NULL, launch, &loaded))
        return 2;
    int apart = !strcmp(argv[2], "namespace");
    if (argv[2][0] == '/')
        take_all(argv[2]);
    if (!strcmp(argv[2], "twice"))
        some(open_copy(argv[1], 0), "copy");
    void *shim = apart ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : dlopen(argv[1], RTLD_NOW);
    printf("loaded=%d\n", shim != NULL);
    if (!shim)
        printf("why=%s\n", dlerror());
#define LOOK(name) BY(dlsym, driver, name)
    cuda = (struct cuda){ CUDA_ROUTE(LOOK) };
    launch_kernel = (cuLaunchKernel_fn)some(dlsym(driver, "cuLaunchKernel"), "cuLaunchKernel");
    cuModuleLoadData_fn load = (void *)some(dlsym(driver, "cuModuleLoadData"), "cuModuleLoadData");
    cuModuleGetFunction_fn find = (void *)some(dlsym(driver, "cuModuleGetFunction"), "cuModuleGetFunction");
    failures += cuda.cuInit(0) || cuda.cuDevicePrimaryCtxRetain(&context, 0) || cuda.cuCtxSetCurrent(context) ||
                load(&module, "image") || find(&kernel, module, "k_1ms");
    printf("over=%u\n", try_alloc(&cuda, LIMIT + 1));
    pthread_barrier_wait(&loaded);
    failures += pthread_create(&threads[1], NULL, launch, NULL) != 0;
    for (int i = 0; i < 2; i++)
        failures += pthread_join(threads[i], NULL) != 0;
    launch(NULL);
    printf("failures=%d\n", failures);
    return failures;
}
