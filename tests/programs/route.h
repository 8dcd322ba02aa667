/*
 * What every route program does once it holds the driver's functions: use them, and print what came of it.
 *
 * A program gets the functions in its own way (that is the route), fills `struct cuda` or `struct nvml`, and reports.
 * The printed lines tell whether the shim stood in between:
 *   where   the object in which the first of the functions lies
 *   init    what cuInit (or nvmlInit_v2) answered; nothing further is tried unless it is 0
 *   over    cuMemAlloc of one byte more than LIMIT: 2 (out of memory) if the limit was seen
 *   small   cuMemAlloc of 16 MiB: must fit
 *   large   cuMemAlloc of six tenths of LIMIT: fits if it is charged once
 *   total   what NVML says is the size of the card
 */
#ifndef ROUTE_H
#define ROUTE_H

#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT ((size_t)4 << 30)

/* The version of everything that the first glibc for this processor had. */
#ifdef __aarch64__
#define FIRST_GLIBC "GLIBC_2.17"
#else
#define FIRST_GLIBC "GLIBC_2.2.5"
#endif

/* The functions that a route has to lead to. */
#define CUDA_ROUTE(X) \
    X(cuInit) X(cuDeviceGet) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuMemAlloc_v2) X(cuMemFree_v2)
#define NVML_ROUTE(X) \
    X(nvmlDeviceGetMemoryInfo) X(nvmlInit_v2) X(nvmlDeviceGetHandleByIndex_v2)

#define ROUTE_FIELD(name) name##_fn name;
struct cuda { CUDA_ROUTE(ROUTE_FIELD) };
struct nvml { NVML_ROUTE(ROUTE_FIELD) };
#undef ROUTE_FIELD

static inline void *some(void *pointer, const char *what)
{
    if (!pointer) {
        fprintf(stderr, "%s: %s\n", what, dlerror());
        exit(1);
    }
    return pointer;
}

/* Expands to one field of a struct, found by `lookup(handle, "name")`. */
#define BY(lookup, handle, name) .name = (name##_fn)some((lookup)((handle), #name), #name),

/* This machine cannot do what the program tests. */
static inline void skip(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(77);
}

/* The file name of the object in which an address lies. */
static inline const char *object_of(const void *address)
{
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return "nowhere";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static inline CUresult try_alloc(const struct cuda *cuda, size_t bytes)
{
    CUdeviceptr pointer = 0;
    CUresult result = cuda->cuMemAlloc_v2(&pointer, bytes);
    if (!result)
        cuda->cuMemFree_v2(pointer);
    return result;
}

static inline int report(const struct cuda *cuda)
{
    CUdevice device = 0;
    CUcontext context = NULL;
    CUresult result = cuda->cuInit(0);
    printf("where=%s\ninit=%u\n", object_of((void *)cuda->cuInit), result);
    if (result)
        return 0;
    if ((result = cuda->cuDeviceGet(&device, 0)) || (result = cuda->cuDevicePrimaryCtxRetain(&context, device)) ||
        (result = cuda->cuCtxSetCurrent(context))) {
        fprintf(stderr, "no context: %u\n", result);
        return 1;
    }
    printf("over=%u\n", try_alloc(cuda, LIMIT + 1));
    printf("small=%u\n", try_alloc(cuda, (size_t)16 << 20));
    printf("large=%u\n", try_alloc(cuda, LIMIT / 10 * 6));
    return 0;
}

static inline int report_nvml(const struct nvml *nvml)
{
    nvmlDevice_t device = NULL;
    nvmlMemory_t memory;
    nvmlReturn_t result = nvml->nvmlInit_v2();
    printf("where=%s\ninit=%u\n", object_of((void *)nvml->nvmlDeviceGetMemoryInfo), result);
    if (result)
        return 0;
    if ((result = nvml->nvmlDeviceGetHandleByIndex_v2(0, &device)) ||
        (result = nvml->nvmlDeviceGetMemoryInfo(device, &memory))) {
        fprintf(stderr, "no memory information: %u\n", result);
        return 1;
    }
    printf("total=%llu\n", (unsigned long long)memory.total);
    return 0;
}

#endif
