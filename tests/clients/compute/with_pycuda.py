"""PyCUDA: a module, memory of each kind, streams and events."""
import numpy
import pycuda.driver as cuda
from card import main

cuda.init()
context = cuda.Device(0).make_context()
module = cuda.module_from_buffer(b".version 6.0\n.target sm_50\n.address_size 64\n\0")
kernel = module.get_function("kernel")


def run():
    data = numpy.arange(1 << 16, dtype=numpy.float32)
    there = cuda.to_device(data)
    back = numpy.empty_like(data)
    cuda.memcpy_dtoh(back, there)
    assert (back == data).all()
    stream, begin, end = cuda.Stream(), cuda.Event(), cuda.Event()
    locked = cuda.pagelocked_empty_like(data)
    begin.record(stream)
    kernel(there, numpy.int32(1), block=(256, 1, 1), grid=(256, 1), stream=stream)
    cuda.memcpy_dtoh_async(locked, there, stream)
    end.record(stream)
    stream.synchronize()
    assert end.time_since(begin) > 0
    assert (locked == data).all()
    picture = cuda.matrix_to_array(data.reshape(256, 256), order="C")
    module.get_texref("picture").set_array(picture)
    with_pitch, pitch = cuda.mem_alloc_pitch(100, 100, 4)
    assert pitch >= 100
    assert cuda.mem_get_info()[1] == cuda.Device(0).total_memory()


def work():
    kernel(numpy.int32(1), block=(32, 1, 1))
    context.synchronize()


try:
    main(run, cuda.mem_alloc, work)
finally:
    context.pop()
