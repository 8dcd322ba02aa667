"""Takes device memory up to the edge of what is there, by one way that cuda-bindings has: allocate.py WAY

Prints the driver's codes: `over` for one unit more than is free, `edge` for exactly what is free, `past` for one byte
after that; and what cuMemGetInfo says before (`free`), at the edge (`left`) and after all is given back (`back`).
"""
import sys

from cuda.bindings import driver as cuda

ROW = 1 << 16  # bytes in a row of what has rows


def ok(answer):
    """The values of an answer that must be a success."""
    code, *values = answer
    if code != cuda.CUresult.CUDA_SUCCESS:
        sys.exit(f"{sys._getframe(1).f_lineno}: {code!r}")
    return values[0] if len(values) == 1 else values


def settle():
    """What was freed in streams is free now, and kept by no pool."""
    ok(cuda.cuCtxSynchronize())
    ok(cuda.cuMemPoolTrimTo(ok(cuda.cuDeviceGetDefaultMemPool(DEVICE)), 0))


def free_bytes():
    settle()
    return ok(cuda.cuMemGetInfo())[0]


def on_device(kind):
    kind.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    kind.location.id = 0
    return kind


def pitch(size):
    code, pointer, row = cuda.cuMemAllocPitch(ROW, size // ROW, 4)
    if int(code) == 0 and row != ROW:
        sys.exit(f"pitch {row}")
    return code, pointer


def create(size):
    kind = on_device(cuda.CUmemAllocationProp())
    kind.type = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    return cuda.cuMemCreate(size, kind, 0)


def mapped(size):
    """Physical memory that is kept by its mapping alone."""
    code, handle = create(size)
    if int(code) != 0:
        return code, None
    at = ok(cuda.cuMemAddressReserve(size, 0, 0, 0))
    ok(cuda.cuMemMap(at, size, 0, handle, 0))
    rights = on_device(cuda.CUmemAccessDesc())
    rights.flags = cuda.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    ok(cuda.cuMemSetAccess(at, size, [rights], 1))
    ok(cuda.cuMemRelease(handle))
    return code, (at, size)


def unmap(place):
    ok(cuda.cuMemUnmap(*place))
    ok(cuda.cuMemAddressFree(*place))


def default_pool(size):
    return cuda.cuMemAllocFromPoolAsync(size, ok(cuda.cuDeviceGetDefaultMemPool(DEVICE)), STREAM)


def own_pool(size):
    kind = on_device(cuda.CUmemPoolProps())
    kind.allocType = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    pool = ok(cuda.cuMemPoolCreate(kind))
    code, pointer = cuda.cuMemAllocFromPoolAsync(size, pool, STREAM)
    return code, (pool, pointer)


def free_own_pool(both):
    ok(cuda.cuMemFreeAsync(both[1], STREAM))
    ok(cuda.cuCtxSynchronize())
    ok(cuda.cuMemPoolDestroy(both[0]))


def array(size):
    form = cuda.CUDA_ARRAY_DESCRIPTOR()
    form.Width, form.Height, form.NumChannels = ROW // 16, size // ROW, 4
    form.Format = cuda.CUarray_format.CU_AD_FORMAT_FLOAT
    return cuda.cuArrayCreate(form)


def volume(size):
    form = cuda.CUDA_ARRAY3D_DESCRIPTOR()
    form.Width, form.Height, form.Depth, form.NumChannels = 64, ROW // 1024, size // ROW, 4
    form.Format = cuda.CUarray_format.CU_AD_FORMAT_FLOAT
    return form


def mipmapped(size):
    return cuda.cuMipmappedArrayCreate(volume(size), 1)


def describe(kind, size):
    on_device(kind.poolProps)
    kind.poolProps.allocType = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    kind.bytesize = size


def graph(size):
    kind = cuda.CUDA_MEM_ALLOC_NODE_PARAMS()
    describe(kind, size)
    drawn = ok(cuda.cuGraphCreate(0))
    code, _ = cuda.cuGraphAddMemAllocNode(drawn, None, 0, kind)
    return launched(drawn, code, kind)


def node(size):
    """The same by the function that makes nodes of all kinds."""
    form = cuda.CUgraphNodeParams()
    form.type = cuda.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_ALLOC
    describe(form.alloc, size)
    drawn = ok(cuda.cuGraphCreate(0))
    code, _ = cuda.cuGraphAddNode(drawn, None, None, 0, form)
    return launched(drawn, code, form.alloc)


def launched(drawn, code, kind):
    """An allocation that a graph makes when it is launched, and that outlives the launch."""
    runs = None
    if int(code) == 0:
        code, runs = cuda.cuGraphInstantiate(drawn, 0)
    if int(code) == 0:
        (code,) = cuda.cuGraphLaunch(runs, STREAM)
    if int(code) != 0:
        if runs is not None:
            ok(cuda.cuGraphExecDestroy(runs))
        ok(cuda.cuGraphDestroy(drawn))
    return code, (drawn, runs, kind.dptr)


def free_graph(parts):
    drawn, runs, pointer = parts
    ok(cuda.cuMemFree(pointer))
    ok(cuda.cuGraphExecDestroy(runs))
    ok(cuda.cuGraphDestroy(drawn))
    ok(cuda.cuDeviceGraphMemTrim(DEVICE))


# Each way: how to take, how to give back, and its unit.
WAYS = {
    "linear": (cuda.cuMemAlloc, cuda.cuMemFree, 1),
    "pitch": (pitch, cuda.cuMemFree, ROW),
    "managed": (lambda size: cuda.cuMemAllocManaged(size, 1), cuda.cuMemFree, 1),
    "async": (lambda size: cuda.cuMemAllocAsync(size, STREAM), lambda at: cuda.cuMemFreeAsync(at, STREAM), 1),
    "default pool": (default_pool, lambda at: cuda.cuMemFreeAsync(at, STREAM), 1),
    "own pool": (own_pool, free_own_pool, 1),
    "create": (create, cuda.cuMemRelease, 2 << 20),
    "mapped": (mapped, unmap, 2 << 20),
    "array": (array, cuda.cuArrayDestroy, ROW),
    "volume": (lambda size: cuda.cuArray3DCreate(volume(size)), cuda.cuArrayDestroy, ROW),
    "mipmapped": (mipmapped, cuda.cuMipmappedArrayDestroy, ROW),
    "graph": (graph, free_graph, 1),
    "node of a graph": (node, free_graph, 1),
    "host": (lambda size: cuda.cuMemHostAlloc(size, 0), cuda.cuMemFreeHost, 1),
}


def main():
    take, give_back, unit = WAYS[sys.argv[1]]
    free, total = free_bytes(), ok(cuda.cuMemGetInfo())[1]
    print(f"total={total}\nfree={free}\ndevice={ok(cuda.cuDeviceTotalMem(DEVICE))}")
    for key, size in (("over", free + unit), ("edge", free)):
        code, taken = take(size)
        print(f"{key}={int(code)}")
        if int(code) != 0:
            continue
        if key == "edge":
            ok(cuda.cuCtxSynchronize())
            print(f"left={ok(cuda.cuMemGetInfo())[0]}")
            code, at = cuda.cuMemAlloc(1)
            print(f"past={int(code)}")
            if int(code) == 0:
                ok(cuda.cuMemFree(at))
        give_back(taken)
        settle()
    print(f"back={free_bytes()}")


STREAM = cuda.CUstream(0)
ok(cuda.cuInit(0))
DEVICE = ok(cuda.cuDeviceGet(0))
ok(cuda.cuCtxSetCurrent(ok(cuda.cuDevicePrimaryCtxRetain(DEVICE))))
main()
