"""Dr.Jit: arrays whose arithmetic is traced, compiled and launched."""
import drjit
from card import main
from drjit.cuda import Float, UInt


def run():
    kept = Float([1, 2, 3])
    assert kept.numpy().tolist() == [1, 2, 3]
    x = drjit.arange(Float, 1 << 12)
    total = drjit.sum(drjit.sin(x) * drjit.gather(Float, x, UInt(drjit.arange(UInt, 16))[0]))
    drjit.eval(total)
    drjit.sync_thread()


def take(size):
    array = drjit.arange(UInt, size // 4) + 1
    drjit.eval(array)
    drjit.sync_thread()
    return array


def work():
    x = drjit.arange(Float, 1 << 12)
    drjit.eval(x * 2 + 1)
    drjit.sync_thread()


main(run, take, work)
