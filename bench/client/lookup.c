/* The client's commands that look names up. See client.h. */
#include "client.h"

#include <dlfcn.h>
#include <stdio.h>

/* A library that every process has, so that a look-up in it costs the same everywhere. */
static void *libc(void)
{
    static void *library;
    if (!library) {
        library = dlopen("libc.so.6", RTLD_NOW);
        need(library != NULL, "no libc.so.6");
    }
    return library;
}

static void loop(void *library, const char *name, int found, uint64_t turns)
{
    need((dlsym(library, name) != NULL) == found, "a look-up answers otherwise than expected");
    uint64_t start = now();
    for (uint64_t i = 0; i < turns; i++) {
        /* volatile: the answer is used, as far as the compiler knows. */
        void *volatile address = dlsym(library, name);
        (void)address;
    }
    printf("ns=%.3f\n", (double)(now() - start) / (double)turns);
}

/* other N: a name that is none of the driver's. */
static void other(uint64_t turns, uint64_t second)
{
    (void)second;
    loop(libc(), "qsort", 1, turns);
}

/* driver-name N: a name of the driver, in a library that does not have it. */
static void driver_name(uint64_t turns, uint64_t second)
{
    (void)second;
    loop(libc(), "cuMemAlloc_v2", 0, turns);
}

/* hooked N, unhooked N: names that the driver has, of which the shim intercepts the first. */
static void hooked(uint64_t turns, uint64_t second)
{
    (void)second;
    loop(driver.library, "cuMemAlloc_v2", 1, turns);
}

static void unhooked(uint64_t turns, uint64_t second)
{
    (void)second;
    loop(driver.library, "cuLaunchKernel", 1, turns);
}

/* proc N: cuGetProcAddress of a function that the shim intercepts. */
static void proc(uint64_t turns, uint64_t second)
{
    (void)second;
    void *address = NULL;
    CUresult result = CUDA_SUCCESS;
    CUdriverProcAddressQueryResult status;
    uint64_t start = now();
    for (uint64_t i = 0; i < turns; i++) {
        result |= driver.cuGetProcAddress_v2("cuMemAlloc", &address, 12000, 0, &status);
    }
    uint64_t end = now();
    need(result == CUDA_SUCCESS && address != NULL, "cuGetProcAddress_v2 failed");
    printf("ns=%.3f\n", (double)(end - start) / (double)turns);
}

/* Whether an address lies in the driver's library. */
static int in_driver(const void *address)
{
    Dl_info of_address, of_driver;
    /* The driver's version function is not intercepted. */
    const void *version = dlsym(driver.library, "cuDriverGetVersion");
    need(dladdr(address, &of_address) && dladdr(version, &of_driver), "an unknown address");
    return of_address.dli_fbase == of_driver.dli_fbase;
}

/* where: 1 for each look-up that ends in the driver itself. */
static void where(uint64_t first, uint64_t second)
{
    (void)first, (void)second;
    void *proc_address = NULL;
    CUdriverProcAddressQueryResult status;
    driver.cuGetProcAddress_v2("cuMemAlloc", &proc_address, 12000, 0, &status);
    printf("alloc=%d launch=%d proc=%d\n", in_driver((const void *)driver.cuMemAlloc_v2),
           in_driver((const void *)driver.cuLaunchKernel), in_driver(proc_address));
}

const struct command lookup_commands[] = {
    {"other", other},       {"driver-name", driver_name}, {"hooked", hooked},
    {"unhooked", unhooked}, {"proc", proc},               {"where", where},
    {NULL, NULL}};
