/*
 * The actor's commands that bear a driver function's name: SYMBOL SLOT BYTES gets, SYMBOL SLOT gives back. Every row
 * that gets memory takes one size in bytes here, in the form in which it can ask for exactly that. Contexts are made on
 * card 0; a pool in the place that the number says; a pool's attribute is its release threshold. Code comes as a cubin
 * with a variable of this many bytes; functions are told by their number.
 */
#ifndef ACTOR_ROWS_H
#define ACTOR_ROWS_H

#define FLAT(type) { .Width = (typeof(((type *)0)->Width))bytes, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1 }
#define ARRAY(function, type) \
    static CUresult row_##function(uint64_t *slot, uint64_t bytes) \
    { \
        type form = FLAT(type); \
        return call_##function((CUarray *)slot, &form); \
    }
ARRAY(cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1)
ARRAY(cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR)
ARRAY(cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR_v1)
ARRAY(cuArray3DCreate_v2, CUDA_ARRAY3D_DESCRIPTOR)
#undef ARRAY
#undef FLAT

static CUresult row_cuMemAlloc(uint64_t *slot, uint64_t bytes)
{
    CUdeviceptr_v1 pointer = 0;
    CUresult result = call_cuMemAlloc(&pointer, (unsigned int)bytes);
    *slot = result ? *slot : pointer;
    return result;
}

/* One row of the width. */
static CUresult row_cuMemAllocPitch(uint64_t *slot, uint64_t bytes)
{
    CUdeviceptr_v1 pointer = 0;
    unsigned int row = 0;
    CUresult result = call_cuMemAllocPitch(&pointer, &row, (unsigned int)bytes, 1, 4);
    *slot = result ? *slot : pointer;
    return result;
}

static CUresult row_cuMemAllocPitch_v2(uint64_t *slot, uint64_t bytes)
{
    size_t row = 0;
    return call_cuMemAllocPitch_v2(slot, &row, bytes, 1, 4);
}

static CUresult row_cuMemCreate(uint64_t *slot, uint64_t bytes)
{
    CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    return call_cuMemCreate(slot, bytes, &prop, 0);
}

/* From the card's default pool. */
static CUresult row_cuMemAllocFromPoolAsync(cuMemAllocFromPoolAsync_fn alloc, uint64_t *slot, uint64_t bytes)
{
    CUmemoryPool pool;
    CUresult result = call_cuDeviceGetDefaultMemPool(&pool, 0);
    return result ? result : alloc(slot, bytes, pool, NULL);
}

/* A graph gets one more allocation on card 0. */
static CUresult row_cuGraphAddMemAllocNode(uint64_t *graph, uint64_t bytes)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = { .bytesize = bytes };
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUgraphNode node;
    return call_cuGraphAddMemAllocNode(&node, (CUgraph)*graph, NULL, 0, &params);
}

/* The graph of a stream that was captured while it allocated. */
static CUresult row_cuStreamEndCapture(uint64_t *graph, uint64_t bytes)
{
    CUstream stream;
    CUdeviceptr pointer;
    CUresult result = call_cuStreamCreate(&stream, 0);
    if (!result)
        result = call_cuStreamBeginCapture_v2(stream, 0);
    if (!result)
        result = call_cuMemAllocAsync(&pointer, bytes, stream);
    return result ? result : call_cuStreamEndCapture(stream, (CUgraph *)graph);
}

/* The slot's graph gives way to what can be launched. */
static CUresult row_cuGraphInstantiateWithFlags(uint64_t *slot)
{
    CUgraphExec exec;
    CUresult result = call_cuGraphInstantiateWithFlags(&exec, (CUgraph)*slot, 0);
    *slot = result ? *slot : (uint64_t)exec;
    return result;
}

/* One level of one row. */
static CUresult row_cuMipmappedArrayCreate(uint64_t *slot, uint64_t bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR form = { .Width = bytes, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1 };
    return call_cuMipmappedArrayCreate((CUmipmappedArray *)slot, &form, 1);
}

/* All multiprocessors of a card; handles of green contexts are kept like those of others. */
static CUresult row_cuGreenCtxCreate(uint64_t *slot, int device)
{
    uint64_t resource[18] = { 0 }; /* CUdevResource */
    void *description;
    CUresult result = call_cuDeviceGetDevResource(device, resource, 1);
    if (!result)
        result = call_cuDevResourceGenerateDesc(&description, resource, 1);
    return result ? result : call_cuGreenCtxCreate((void **)slot, description, device, 1);
}

/* A cubin as far as its headers go: it says that it has a variable of this many bytes. */
static void *cubin(uint64_t bytes)
{
    static struct { uint64_t header[8], section[8]; } image;
    memcpy(image.header, "\177ELF\2\1\1", 7);
    image.header[5] = sizeof image.header; /* where the sections are described */
    image.header[7] = (uint64_t)64 << 16 | (uint64_t)1 << 32; /* in 64 bytes each; there is one */
    image.section[0] = (uint64_t)8 << 32; /* without contents */
    image.section[1] = 2 | 1; /* to be allocated and written */
    image.section[4] = bytes;
    return &image;
}

static CUresult row_cuLibraryLoadData(uint64_t *slot, const void *image)
{
    return call_cuLibraryLoadData((CUlibrary *)slot, image, NULL, NULL, 0, NULL, NULL, 0);
}

static CUresult row_cuLibraryLoadFromFile(uint64_t *slot)
{
    return call_cuLibraryLoadFromFile((CUlibrary *)slot, "/dev/null", NULL, NULL, 0, NULL, NULL, 0);
}

/* Of a module, the function of this number. */
static CUresult row_cuModuleGetFunction(uint64_t *slot, uint64_t module, uint64_t number)
{
    char name[32];
    snprintf(name, sizeof name, "kernel%u", (unsigned int)number);
    return call_cuModuleGetFunction((CUfunction *)slot, (CUmodule)module, name);
}

/* Of the library in a slot, the kernel of this number, as a function of the current context. */
static CUresult row_cuKernelGetFunction(uint64_t library, uint64_t number)
{
    char name[32];
    CUkernel kernel;
    CUfunction function;
    snprintf(name, sizeof name, "kernel%u", (unsigned int)number);
    CUresult result = call_cuLibraryGetKernel(&kernel, (CUlibrary)library, name);
    return result ? result : call_cuKernelGetFunction(&function, kernel);
}

static CUresult row_cuLibraryGetModule(uint64_t library)
{
    CUmodule module;
    return call_cuLibraryGetModule(&module, (CUlibrary)library);
}

static CUresult row_cuLibraryGetGlobal(cuLibraryGetGlobal_fn get, uint64_t library)
{
    CUdeviceptr pointer;
    return get(&pointer, NULL, (CUlibrary)library, "variable");
}

static CUresult row_cuMemPoolCreate(uint64_t *slot, uint64_t location)
{
    CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { (int)location, 0 } };
    return call_cuMemPoolCreate((CUmemoryPool *)slot, &props);
}

/* Not in the header: drivers have it from 13.0 on. */
static CUresult row_cuMemGetPool(const char *name, uint64_t *slot, uint64_t device)
{
    CUmemLocation location = { CU_MEM_LOCATION_TYPE_DEVICE, (int)device };
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *call = dlsym(cuda, name);
    return ((CUresult(*)(CUmemoryPool *, CUmemLocation *, int))call)((CUmemoryPool *)slot, &location,
                                                                     CU_MEM_ALLOCATION_TYPE_PINNED);
}

/* As a way that the shim does not know would give it out. */
static CUresult stub_default_pool(uint64_t *slot, uint64_t device)
{
    void *call = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "stubDefaultPool");
    *slot = ((uint64_t(*)(unsigned int))call)((unsigned int)device);
    return 0;
}

/* False if the verb is no driver function's name. */
static int obey_row(CUresult *result, const char *verb, uint64_t *slot, uint64_t bytes)
{
#define ROW(name, call) if (strcmp(verb, #name) == 0) return *result = (call), 1;
    ROW(cuMemAlloc, row_cuMemAlloc(slot, bytes))
    ROW(cuMemAlloc_v2, call_cuMemAlloc_v2(slot, bytes))
    ROW(cuMemAllocPitch, row_cuMemAllocPitch(slot, bytes))
    ROW(cuMemAllocPitch_v2, row_cuMemAllocPitch_v2(slot, bytes))
    ROW(cuMemAllocManaged, call_cuMemAllocManaged(slot, bytes, CU_MEM_ATTACH_GLOBAL))
    ROW(cuMemAllocAsync, call_cuMemAllocAsync(slot, bytes, NULL))
    ROW(cuMemAllocAsync_ptsz, call_cuMemAllocAsync_ptsz(slot, bytes, NULL))
    ROW(cuMemAllocFromPoolAsync, row_cuMemAllocFromPoolAsync(call_cuMemAllocFromPoolAsync, slot, bytes))
    ROW(cuMemAllocFromPoolAsync_ptsz, row_cuMemAllocFromPoolAsync(call_cuMemAllocFromPoolAsync_ptsz, slot, bytes))
    ROW(cuMemCreate, row_cuMemCreate(slot, bytes))
    ROW(cuArrayCreate, row_cuArrayCreate(slot, bytes))
    ROW(cuArrayCreate_v2, row_cuArrayCreate_v2(slot, bytes))
    ROW(cuArray3DCreate, row_cuArray3DCreate(slot, bytes))
    ROW(cuArray3DCreate_v2, row_cuArray3DCreate_v2(slot, bytes))
    ROW(cuMipmappedArrayCreate, row_cuMipmappedArrayCreate(slot, bytes))
    ROW(cuMipmappedArrayDestroy, call_cuMipmappedArrayDestroy((CUmipmappedArray)*slot))
    ROW(cuDeviceGetDefaultMemPool, call_cuDeviceGetDefaultMemPool((CUmemoryPool *)slot, 0))
    ROW(cuMemGetDefaultMemPool, row_cuMemGetPool(verb, slot, bytes))
    ROW(cuMemGetMemPool, row_cuMemGetPool(verb, slot, bytes))
    ROW(stubDefaultPool, stub_default_pool(slot, bytes))
    ROW(cuDeviceSetMemPool, call_cuDeviceSetMemPool(0, (CUmemoryPool)*slot))
    ROW(cuMemPoolCreate, row_cuMemPoolCreate(slot, bytes))
    ROW(cuMemPoolDestroy, call_cuMemPoolDestroy((CUmemoryPool)*slot))
    ROW(cuGraphCreate, call_cuGraphCreate((CUgraph *)slot, 0))
    ROW(cuGraphAddMemAllocNode, row_cuGraphAddMemAllocNode(slot, bytes))
    ROW(cuStreamEndCapture, row_cuStreamEndCapture(slot, bytes))
    ROW(cuGraphInstantiateWithFlags, row_cuGraphInstantiateWithFlags(slot))
    ROW(cuGraphUpload, call_cuGraphUpload((CUgraphExec)*slot, NULL))
    ROW(cuGraphLaunch, call_cuGraphLaunch((CUgraphExec)*slot, NULL))
    ROW(cuGraphExecDestroy, call_cuGraphExecDestroy((CUgraphExec)*slot))
    ROW(cuDeviceGraphMemTrim, call_cuDeviceGraphMemTrim(0))
    ROW(cuMemPoolTrimTo, call_cuMemPoolTrimTo((CUmemoryPool)*slot, bytes))
    ROW(cuMemPoolSetAttribute, call_cuMemPoolSetAttribute((CUmemoryPool)*slot, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes))
    ROW(cuModuleLoad, call_cuModuleLoad((CUmodule *)slot, "/dev/null"))
    ROW(cuModuleLoadData, call_cuModuleLoadData((CUmodule *)slot, bytes ? cubin(bytes) : ".version"))
    ROW(cuModuleLoadDataEx, call_cuModuleLoadDataEx((CUmodule *)slot, cubin(bytes), 0, NULL, NULL))
    ROW(cuModuleLoadFatBinary, call_cuModuleLoadFatBinary((CUmodule *)slot, cubin(bytes)))
    ROW(cuModuleUnload, call_cuModuleUnload((CUmodule)*slot))
    ROW(cuFuncLoad, call_cuFuncLoad((CUfunction)*slot))
    ROW(cuLibraryLoadData, row_cuLibraryLoadData(slot, cubin(bytes)))
    ROW(cuLibraryLoadFromFile, row_cuLibraryLoadFromFile(slot))
    ROW(cuLibraryUnload, call_cuLibraryUnload((CUlibrary)*slot))
    ROW(cuLibraryGetModule, row_cuLibraryGetModule(*slot))
    ROW(cuLibraryGetGlobal, row_cuLibraryGetGlobal(call_cuLibraryGetGlobal, *slot))
    ROW(cuLibraryGetManaged, row_cuLibraryGetGlobal(call_cuLibraryGetManaged, *slot))
    ROW(cuKernelGetFunction, row_cuKernelGetFunction(*slot, bytes))
    ROW(cuCtxCreate, call_cuCtxCreate((CUcontext *)slot, 0, 0))
    ROW(cuCtxCreate_v2, call_cuCtxCreate_v2((CUcontext *)slot, 0, 0))
    ROW(cuCtxCreate_v3, call_cuCtxCreate_v3((CUcontext *)slot, NULL, 0, 0, 0))
    ROW(cuCtxCreate_v4, call_cuCtxCreate_v4((CUcontext *)slot, NULL, 0, 0))
    ROW(cuGLCtxCreate, call_cuGLCtxCreate((CUcontext *)slot, 0, 0))
    ROW(cuGLCtxCreate_v2, call_cuGLCtxCreate_v2((CUcontext *)slot, 0, 0))
    ROW(cuVDPAUCtxCreate, call_cuVDPAUCtxCreate((CUcontext *)slot, 0, 0, 0, NULL))
    ROW(cuVDPAUCtxCreate_v2, call_cuVDPAUCtxCreate_v2((CUcontext *)slot, 0, 0, 0, NULL))
    ROW(cuGreenCtxCreate, row_cuGreenCtxCreate(slot, (int)bytes))
    ROW(cuGreenCtxDestroy, call_cuGreenCtxDestroy((void *)*slot))
    ROW(cuCtxDestroy, call_cuCtxDestroy((CUcontext)*slot))
    ROW(cuCtxDestroy_v2, call_cuCtxDestroy_v2((CUcontext)*slot))
    ROW(cuCtxAttach, call_cuCtxAttach((CUcontext *)slot, 0))
    ROW(cuCtxDetach, call_cuCtxDetach((CUcontext)*slot))
    ROW(cuCtxSetCurrent, call_cuCtxSetCurrent((CUcontext)*slot))
    ROW(cuMemFree, call_cuMemFree((CUdeviceptr_v1)*slot))
    ROW(cuMemFree_v2, call_cuMemFree_v2(*slot))
    ROW(cuMemFreeAsync, call_cuMemFreeAsync(*slot, NULL))
    ROW(cuMemFreeAsync_ptsz, call_cuMemFreeAsync_ptsz(*slot, NULL))
    ROW(cuMemRelease, call_cuMemRelease(*slot))
    ROW(cuArrayDestroy, call_cuArrayDestroy((CUarray)*slot))
#undef ROW
    return 0;
}

#endif
