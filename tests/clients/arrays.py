"""Takes device arrays up to the edge of what is there, with numba-cuda; prints as allocate.py does."""
import numpy
from numba import cuda
from numba.cuda.cudadrv.driver import CudaAPIError


def take(size):
    """The driver's code for an array of this many bytes, and the array."""
    try:
        return 0, cuda.device_array(size, dtype=numpy.uint8)
    except CudaAPIError as error:
        return int(error.code), None


def free_bytes():
    # What goes out of use is given back later, and some at a time.
    context.deallocations.clear()
    return context.get_memory_info().free


context = cuda.current_context()
free = free_bytes()
print(f"total={context.get_memory_info().total}\nfree={free}")
code, array = take(free + 1)
print(f"over={code}")
del array
free_bytes()
code, array = take(free)
print(f"edge={code}\nleft={free_bytes()}\npast={take(1)[0]}")
del array
print(f"back={free_bytes()}")
