"""tinygrad: tensors, and a function that its JIT turns into a graph."""
from card import main
from tinygrad import Tensor, TinyJit, dtypes


@TinyJit
def step(x):
    y = (x @ x).relu().realize()
    return (y + x).sum(axis=0).realize()


def run():
    kept = Tensor([1.0, 2.0, 3.0]).realize()
    assert kept.tolist() == [1.0, 2.0, 3.0]
    for _ in range(5):  # recorded, made a graph, and replayed with other memory
        step(Tensor.ones(64, 64).contiguous().realize()).numpy()


def take(size):
    return Tensor.empty(size, dtype=dtypes.uint8).contiguous().realize().uop.base.buffer.ensure_allocated()


def work():
    step(Tensor.ones(64, 64).contiguous().realize()).numpy()


main(run, take, work)
