/*
 * The calls of a sequence, and what they leave: each kind of thing has some places, in which it lies until a later call
 * or sequence_end.h gives it back. A call may fail for any reason that the driver has; what it got is only kept if it
 * succeeded.
 */
#ifndef SEQUENCE_CALLS_H
#define SEQUENCE_CALLS_H

#define COUNT(places) (sizeof(places) / sizeof *(places))
#define ANY(places) ((places)[below(COUNT(places))])

static CUcontext primary, own[3];
static CUstream streams[5];
static CUevent event;
static CUmodule module;
static struct { CUdeviceptr at; } memory[48];
static CUmemoryPool pools[6];
static CUmemGenericAllocationHandle handles[8];
static int files[2] = { -1, -1 };
static struct { CUdeviceptr at; size_t bytes; int is_mapped; } ranges[8];
static CUarray arrays[8];
static CUmipmappedArray mipmaps[8];
static struct { CUgraphExec exec; CUgraph graph; CUdeviceptr allocated; } graphs[4];
static CUdeviceptr opened[4];

static const char *const kernels[] = { "ns_20000", "ns_300000", "ns_2000000" };
enum { PAGE = 2 << 20 };

static void retain(void)
{
    if (DO(cuDevicePrimaryCtxRetain, &primary, 0) || DO(cuCtxSetCurrent, primary) ||
        DO(cuModuleLoadData, &module, "image"))
        primary = NULL;
}

/* Where there is no context, little can be done. */
static void have_context(void)
{
    if (primary == NULL)
        retain();
    CUcontext current = NULL;
    DO(cuCtxGetCurrent, &current);
    if (current == NULL && primary)
        DO(cuCtxSetCurrent, primary);
}

static CUstream some_stream(void)
{
    return below(3) ? ANY(streams) : NULL;
}

static void work(void)
{
    CUfunction kernel;
    if (module && DO(cuModuleGetFunction, &kernel, module, ANY(kernels)) == 0)
        DO(cuLaunchKernel, kernel, 1, 1, 1, 32, 1, 1, 0, some_stream(), NULL, NULL);
}

static void take(void)
{
    CUdeviceptr at = 0;
    size_t pitch;
    unsigned int low_pitch;
    CUdeviceptr_v1 low = 0;
    CUresult result;
    uint64_t bytes = some_bytes();
    switch (below(12)) {
    case 0: result = DO(cuMemAlloc_v2, &at, bytes); break;
    case 1: result = DO(cuMemAllocManaged, &at, bytes, 1); break;
    case 2: result = DO(cuMemAllocPitch_v2, &at, &pitch, 1 + below(5000), 1 + bytes / 5000, 4); break;
    case 3: result = DO(cuMemAllocPitch_v2, &at, &pitch, 1 + below(3), 1 + bytes / 3, 4); break;
    case 4:
        result = below(2) ? DO(cuMemAlloc, &low, (unsigned int)bytes)
                          : DO(cuMemAllocPitch, &low, &low_pitch, 1 + (unsigned int)below(600), (unsigned int)bytes / 600, 8);
        at = low;
        break;
    case 5: case 6: case 7: result = DO(cuMemAllocAsync, &at, bytes, some_stream()); break;
    case 8: result = DO(cuMemAllocAsync_ptsz, &at, bytes, NULL); break;
    default: result = DO(cuMemAllocFromPoolAsync, &at, bytes, ANY(pools), some_stream()); break;
    }
    if (result)
        return;
    typeof(&memory[0]) place = &ANY(memory);
    if (place->at && (below(2) || DO(cuMemFreeAsync, place->at, some_stream())))
        DO(cuMemFree_v2, place->at);
    place->at = at;
}

static void give(void)
{
    typeof(&memory[0]) place = &ANY(memory);
    if (!place->at)
        return;
    CUresult result = below(3) ? DO(cuMemFreeAsync, place->at, some_stream())
                      : below(2) ? DO(cuMemFree_v2, place->at)
                                 : DO(cuMemFreeAsync_ptsz, place->at, NULL);
    if (result == 0)
        place->at = 0;
}

static void wait_for(void)
{
    switch (below(6)) {
    case 0: DO(cuCtxSynchronize); break;
    case 1: DO(cuStreamQuery, some_stream()); break;
    case 2:
        DO(cuEventRecord, event, some_stream());
        DO(cuEventSynchronize, event);
        break;
    case 3: DO(cuStreamSynchronize_ptsz, NULL); break;
    default: DO(cuStreamSynchronize, some_stream()); break;
    }
}

static void pool(void)
{
    static const uint64_t thresholds[] = { 0, 1 << 20, 64 << 20, UINT64_MAX };
    CUmemoryPool *place = &ANY(pools), standard = NULL;
    CUmemPoolProps props = { .allocType = 1, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    uint64_t threshold = ANY(thresholds);
    DO(cuDeviceGetDefaultMemPool, &standard, 0);
    switch (below(9)) {
    case 0: case 1:
        if (*place && DO(cuMemPoolDestroy, *place))
            break;
        *place = NULL;
        DO(cuMemPoolCreate, place, &props);
        break;
    case 2: case 3: DO(cuMemPoolSetAttribute, *place, 4, &threshold); break;
    case 4: DO(cuMemPoolSetAttribute, standard, 4, &threshold); break;
    case 5: DO(cuMemPoolTrimTo, *place, below(2) ? 0 : some_bytes()); break;
    case 6: DO(cuMemPoolTrimTo, standard, below(2) ? 0 : some_bytes()); break;
    case 7: DO(cuDeviceSetMemPool, 0, below(2) ? *place : standard); break;
    default: DO(cuDeviceGetMemPool, &standard, 0); break;
    }
}

static void stream(void)
{
    CUstream *place = &ANY(streams);
    if (*place)
        DO(cuStreamDestroy_v2, *place);
    *place = NULL;
    DO(cuStreamCreate, place, (unsigned int)below(2));
}

static void physical(void)
{
    CUmemGenericAllocationHandle *place = &ANY(handles);
    typeof(&ranges[0]) range = &ANY(ranges);
    CUmemAllocationProp prop = { .type = 1, .requestedHandleTypes = 1, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    int *file = &ANY(files);
    switch (below(9)) {
    case 0: case 1:
        if (*place && DO(cuMemRelease, *place))
            break;
        *place = 0;
        DO(cuMemCreate, place, (some_bytes() / PAGE + below(2)) * PAGE, &prop, 0);
        break;
    case 2: case 3:
        if (!range->at && DO(cuMemAddressReserve, &range->at, range->bytes = (1 + below(8)) * PAGE, 0, 0, 0) == 0 &&
            DO(cuMemMap, range->at, range->bytes, 0, *place, 0) == 0)
            range->is_mapped = 1;
        break;
    case 4:
        if (range->is_mapped && DO(cuMemUnmap, range->at, range->bytes) == 0)
            range->is_mapped = 0;
        if (range->at && !range->is_mapped && DO(cuMemAddressFree, range->at, range->bytes) == 0)
            range->at = 0;
        break;
    case 5:
        if (!*place && range->is_mapped)
            DO(cuMemRetainAllocationHandle, place, (void *)range->at);
        break;
    case 6:
        if (*file >= 0)
            close(*file);
        *file = -1;
        if (DO(cuMemExportToShareableHandle, file, *place, 1, 0))
            *file = -1;
        break;
    case 7:
        if (!*place && *file >= 0)
            DO(cuMemImportFromShareableHandle, place, (void *)(intptr_t)*file, 1);
        break;
    default:
        if (*place && DO(cuMemRelease, *place) == 0)
            *place = 0;
        break;
    }
}

static void array(void)
{
    static const unsigned int flags[] = { 0, 1, 4, 5, 0x40, 0x80 };
    static const int formats[] = { 1, 2, 0x10, 0x20 };
    static const unsigned int channels[] = { 1, 2, 4 };
    uint64_t texels = 1 + some_bytes() / 16, width = 1 + below(4000);
    CUDA_ARRAY3D_DESCRIPTOR form = { .Width = width, .Height = texels / width, .Format = ANY(formats),
                                     .NumChannels = ANY(channels), .Flags = ANY(flags) };
    if (below(2) && form.Height) {
        form.Depth = 1 + below(12);
        form.Height = 1 + form.Height / form.Depth;
    }
    if (form.Flags & 4)
        form.Width = form.Height = 1 + below(64), form.Depth = 6 * (1 + below(4));
    CUarray *place = &ANY(arrays);
    CUmipmappedArray *levels = &ANY(mipmaps);
    if (below(2)) {
        if (*place)
            DO(cuArrayDestroy, *place);
        *place = NULL;
        DO(cuArray3DCreate_v2, place, &form);
    } else {
        if (*levels)
            DO(cuMipmappedArrayDestroy, *levels);
        *levels = NULL;
        DO(cuMipmappedArrayCreate, levels, &form, (unsigned int)(below(8) ? below(15) : UINT32_MAX));
    }
}

static void context(void)
{
    CUcontext *place = &ANY(own);
    switch (below(8)) {
    case 0: case 1:
        if (*place && DO(cuCtxDestroy_v2, *place))
            break;
        *place = NULL;
        DO(cuCtxCreate_v2, place, 0, 0);
        break;
    case 2: case 3: DO(cuCtxSetCurrent, *place ? *place : primary); break;
    case 4:
        if (primary && DO(cuDevicePrimaryCtxReset_v2, 0) == 0)
            primary = NULL, module = NULL;
        break;
    case 5:
        if (primary && DO(cuDevicePrimaryCtxRelease_v2, 0) == 0)
            primary = NULL, module = NULL;
        break;
    default: DO(cuCtxSetLimit, (int)below(3), (size_t)(1 << 20) << below(6)); break;
    }
}

/* A graph that allocates once or twice, and perhaps frees what it has allocated. */
static CUgraph made_graph(CUdeviceptr *allocated)
{
    CUgraph graph = NULL;
    CUgraphNode node, before;
    if (below(3) == 0) {
        CUstream captured = ANY(streams);
        if (!captured || DO(cuStreamBeginCapture_v2, captured, (int)below(3)))
            return NULL;
        DO(cuMemAllocAsync, allocated, some_bytes(), captured);
        if (below(2) && DO(cuMemFreeAsync, *allocated, captured) == 0)
            *allocated = 0;
        return DO(cuStreamEndCapture, captured, &graph) ? NULL : graph;
    }
    if (DO(cuGraphCreate, &graph, 0))
        return NULL;
    for (uint64_t count = 1 + below(2); count; count--) {
        CUDA_MEM_ALLOC_NODE_PARAMS params = { .bytesize = some_bytes() };
        params.poolProps.allocType = 1;
        params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        if (DO(cuGraphAddMemAllocNode, &node, graph, NULL, 0, &params) == 0) {
            before = node;
            *allocated = below(2) && DO(cuGraphAddMemFreeNode, &node, graph, &before, 1, params.dptr) == 0 ? 0 : params.dptr;
        }
    }
    return graph;
}

static void graph(void)
{
    typeof(&graphs[0]) place = &ANY(graphs);
    switch (below(6)) {
    case 0:
        if (place->exec) {
            if (place->allocated)
                DO(cuMemFree_v2, place->allocated);
            if (DO(cuGraphExecDestroy, place->exec))
                break;
            DO(cuGraphDestroy, place->graph);
            memset(place, 0, sizeof *place);
        }
        place->graph = made_graph(&place->allocated);
        if (place->graph && DO(cuGraphInstantiateWithFlags, &place->exec, place->graph, below(2))) {
            DO(cuGraphDestroy, place->graph);
            memset(place, 0, sizeof *place);
        }
        break;
    case 1: case 2:
        if (place->exec)
            DO(cuGraphLaunch, place->exec, some_stream());
        break;
    case 3:
        if (place->exec)
            DO(cuGraphUpload, place->exec, some_stream());
        break;
    case 4:
        if (place->allocated)
            below(2) ? DO(cuMemFree_v2, place->allocated) : DO(cuMemFreeAsync, place->allocated, some_stream());
        break;
    default: DO(cuDeviceGraphMemTrim, 0); break;
    }
}

/* Memory of this process is named for others, or theirs is opened. */
static void peer(void)
{
    char path[4096];
    CUipcMemHandle handle;
    CUdeviceptr *place = &ANY(opened);
    snprintf(path, sizeof path, "%s/name-%u", peers, (unsigned int)below(4));
    if (below(2)) {
        if (DO(cuIpcGetMemHandle, &handle, ANY(memory).at))
            return;
        int file = open(path, O_WRONLY | O_CREAT, 0600);
        if (write(file, &handle, sizeof handle) < 0)
            exit(5);
        close(file);
        return;
    }
    if (*place)
        DO(cuIpcCloseMemHandle, *place);
    *place = 0;
    int file = open(path, O_RDONLY);
    if (file >= 0 && read(file, &handle, sizeof handle) == sizeof handle)
        DO(cuIpcOpenMemHandle_v2, place, handle, 1);
    close(file);
}

static void step(void)
{
    static void (*const ways[])(void) = { take, take, take, take, give, give, give, give, wait_for, wait_for, pool, pool,
                                          stream, physical, physical, array, context, graph, graph, work, work, peer };
    have_context();
    if (!event)
        DO(cuEventCreate, &event, 2);
    ANY(ways)();
    if (is_busy)
        work();
}

#endif
