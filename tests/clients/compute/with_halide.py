"""Halide: a pipeline that its JIT compiles for the card."""
import halide
import numpy
from card import main

target = halide.get_host_target().with_feature(halide.TargetFeature.CUDA)
x, y, outer_x, outer_y, inner_x, inner_y = (halide.Var() for _ in range(6))
pipeline = halide.Func("pipeline")
pipeline[x, y] = halide.cast(halide.UInt(8), x + y)
pipeline.gpu_tile(x, y, outer_x, outer_y, inner_x, inner_y, 16, 16)
pipeline.compile_jit(target)
small = halide.Buffer(halide.UInt(8), [64, 64])


def run():
    numpy.asarray(small)[:] = 3
    work()


def take(size):
    # A buffer is smaller than 2 GiB.
    buffers = [halide.Buffer(halide.UInt(8), [1 << 16, 1 << 14]) for _ in range(size >> 30)]
    for buffer in buffers:
        pipeline.realize(buffer, target)
        buffer.device_sync()
    return buffers


def work():
    pipeline.realize(small, target)
    small.device_sync()


main(run, take, work)
