"""Taichi: fields, and kernels that it compiles."""
import numpy
import taichi
from card import main

taichi.init(arch=taichi.cuda, device_memory_GB=0.25, offline_cache=False, log_level=taichi.ERROR)
assert taichi.lang.impl.current_cfg().arch == taichi.cuda
field = taichi.field(taichi.f32, shape=256)


@taichi.kernel
def step():
    for i in field:
        field[i] = field[i] * 2 + 1


def run():
    field.from_numpy(numpy.ones(256, dtype=numpy.float32))
    step()
    taichi.sync()


def take(size):
    array = taichi.ndarray(taichi.f32, shape=size // 4)
    taichi.sync()
    return array


def work():
    step()
    taichi.sync()


main(run, take, work)
