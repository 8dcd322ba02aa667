"""ctypes: the interpreter opens the library and looks the names up."""

import ctypes

LIMIT = 4 << 30
cuda = ctypes.CDLL("libcuda.so.1")
device, context = ctypes.c_int(), ctypes.c_void_p()


def alloc(size):
    pointer = ctypes.c_uint64()
    result = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
    if result == 0:
        cuda.cuMemFree_v2(pointer)
    return result


result = cuda.cuInit(0)
print(f"init={result}")
if result == 0:
    assert cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    print(f"over={alloc(LIMIT + 1)}\nsmall={alloc(16 << 20)}\nlarge={alloc(LIMIT // 10 * 6)}")
