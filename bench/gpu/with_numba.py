"""numba-cuda, one case per process: see frameworks.py."""

import json
import sys

import numpy
from numba import cuda


@cuda.jit
def doubled(given, out):
    """Twice each number."""
    at = cuda.grid(1)
    if at < given.size:
        out[at] = 2 * given[at]


def kernel():
    """A kernel that numba compiles, and whether more than the slice is refused."""
    given = numpy.arange(100_000, dtype=numpy.float64)
    out = cuda.device_array_like(given)
    doubled[(given.size + 255) // 256, 256](cuda.to_device(given), out)
    refused = False
    try:
        cuda.device_array(6 << 30, dtype=numpy.uint8)
    except Exception as error:  # which class it has depends on the version
        if "OUT_OF_MEMORY" not in str(error):
            raise
        refused = True
    total = cuda.current_context().get_memory_info().total
    facts = {"refused": refused, "total": total == 4 << 30}
    return {"result": [float(out.copy_to_host().sum())], "limited": facts}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
