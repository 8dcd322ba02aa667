/*
 * The null driver: a libcuda.so.1 that does nothing, in as little time as it can.
 *
 * Benches put it below the shim, so that what they measure is the shim: every function answers at
 * once, in constant time, without a lock, a system call or a word that two threads share. It hands
 * out addresses and keeps no book of them, so it is no driver to test anything against; that is
 * what the stub is for.
 */
#include "driver.h"

#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
/* A place in the thread's own block: reading it calls nothing. */
#define PER_THREAD static __thread __attribute__((tls_model("initial-exec")))

enum { TOTAL_GIB = 80 };

static int primary_context;
static int default_pool;
static int retains;
static int threads;

PER_THREAD CUcontext current;
PER_THREAD CUdeviceptr next_address;
PER_THREAD CUdeviceptr freed_last;

/* As a real driver would: the address that was freed last is given out first. */
static CUdeviceptr take_address(void)
{
    CUdeviceptr address = freed_last;
    if (address) {
        freed_last = 0;
        return address;
    }
    if (!next_address) {
        uint64_t range = (uint64_t)__atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
        next_address = 0x700000000000 + (range << 36);
    }
    next_address += 4096;
    return next_address;
}

/* ---- devices: one ---- */

EXPORT CUresult cuInit(unsigned int flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = 12040;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    (void)device;
    memset(uuid, 0x5a, sizeof *uuid);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    (void)attribute;
    (void)device;
    *value = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)TOTAL_GIB << 30;
    return CUDA_SUCCESS;
}

/* ---- contexts: the primary one ---- */

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    retains++;
    *context = (CUcontext)(void *)&primary_context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    retains--;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    (void)device;
    *flags = 0;
    *active = retains > 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    current = context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    (void)bytes;
    *pointer = take_address();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    freed_last = pointer;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
    (void)bytes;
    (void)stream;
    *pointer = take_address();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
    (void)stream;
    freed_last = pointer;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    *free = *total = (size_t)TOTAL_GIB << 30;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                                   unsigned int element)
{
    (void)height;
    (void)element;
    *pitch = (width + 511) / 512 * 512;
    *pointer = take_address();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
    (void)flags;
    return cuMemAlloc_v2(pointer, bytes);
}

EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    (void)bytes;
    (void)flags;
    *pointer = (void *)take_address();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeHost(void *pointer)
{
    return cuMemFree_v2((CUdeviceptr)pointer);
}

/* ---- physical memory: a handle is an address that nothing is mapped at ---- */

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                            const CUmemAllocationProp *prop, uint64_t flags)
{
    (void)prop;
    (void)flags;
    return cuMemAlloc_v2(handle, bytes);
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return cuMemFree_v2(handle);
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                         CUmemGenericAllocationHandle handle, uint64_t flags)
{
    (void)address, (void)bytes, (void)offset, (void)handle, (void)flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    (void)address;
    (void)bytes;
    return CUDA_SUCCESS;
}

/* ---- arrays ---- */

EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    return cuMemAlloc_v2((CUdeviceptr *)array, descriptor->Width);
}

EXPORT CUresult cuArrayDestroy(CUarray array)
{
    return cuMemFree_v2((CUdeviceptr)array);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *array,
                                       const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                       unsigned int levels)
{
    (void)levels;
    return cuMemAlloc_v2((CUdeviceptr *)array, descriptor->Width);
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    return cuMemFree_v2((CUdeviceptr)array);
}

/* ---- pools: one, which keeps nothing ---- */

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
                                        CUstream stream)
{
    (void)pool;
    return cuMemAllocAsync(pointer, bytes, stream);
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    (void)device;
    *pool = (CUmemoryPool)(void *)&default_pool;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    return cuDeviceGetMemPool(pool, device);
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    (void)pool;
    (void)attribute;
    *(uint64_t *)value = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    (void)pool;
    (void)keep;
    return CUDA_SUCCESS;
}

/* ---- streams and events: an event is reached when it is recorded ---- */

enum { EVENTS = 1 << 16 };
static int streams, events;
static struct timespec recorded[EVENTS];

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    (void)flags;
    *stream = (CUstream)(uintptr_t)(0x1000 + 64 * __atomic_add_fetch(&streams, 1, __ATOMIC_RELAXED));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    (void)stream;
    *context = current;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
    (void)stream;
    *status = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    (void)flags;
    int place = __atomic_add_fetch(&events, 1, __ATOMIC_RELAXED);
    if (place >= EVENTS) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *event = (CUevent)(void *)&recorded[place];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, (struct timespec *)(void *)event);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    const struct timespec *from = (const void *)start, *to = (const void *)end;
    double ns = (double)(to->tv_sec - from->tv_sec) * 1e9 + (double)(to->tv_nsec - from->tv_nsec);
    *milliseconds = (float)(ns / 1e6);
    return CUDA_SUCCESS;
}

/* ---- launches ---- */

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                               unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                               unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                               void **parameters, void **extra)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared_bytes, (void)stream, (void)parameters, (void)extra;
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- look-up ---- */

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
    (void)version;
    (void)flags;
    *pfn = NULL;
    if (!strcmp(symbol, "cuMemAlloc")) {
        *pfn = (void *)cuMemAlloc_v2;
    } else if (!strcmp(symbol, "cuLaunchKernel")) {
        *pfn = (void *)cuLaunchKernel;
    }
    if (status) {
        *status = *pfn ? 0 : 1;
    }
    return CUDA_SUCCESS;
}
