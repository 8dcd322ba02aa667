"""CuPy, one case per process: see frameworks.py."""

import json
import sys

import cupy


def work():
    """Numbers from a matrix, and whether more than the slice is refused."""
    given = cupy.arange(1 << 20, dtype=cupy.float64).reshape(1024, 1024)
    sums = [float((given @ given)[0, 0]), float(cupy.sqrt(given).sum())]
    refused = False
    try:
        cupy.zeros(6 << 30, dtype=cupy.uint8)
    except (cupy.cuda.memory.OutOfMemoryError, cupy.cuda.runtime.CUDARuntimeError):
        refused = True
    sums.append(float(cupy.ones(1 << 20).sum()))  # it works on
    free, total = cupy.cuda.runtime.memGetInfo()
    return {"result": sums, "limited": {"refused": refused, "total": total == 4 << 30, "free": free < total}}


def pool():
    """CuPy's own pool, the default."""
    return work()


def asynchronous():
    """The driver's pool."""
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    return work()


def managed():
    """Managed memory, which without the shim may exceed the card."""
    cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
    return work()


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
