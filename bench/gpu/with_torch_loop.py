"""PyTorch for a while: `with_torch_loop.py LOOP SECONDS` says ready, waits for a line, works, and prints steps per
second, the median and the 99th percentile of a step's time, and the part of the time in which the card was busy by its
own events (which says something without a limit only).
"""

import json
import sys
import time

import torch
from torch import nn

from torch_models import Block, captured, step_of


def matmul():
    """bf16 products that fill the card."""
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    b, out = torch.randn_like(a), torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out)


def memory_bound():
    """Sums of vectors, ten at a time, which wait for memory."""
    a = torch.ones(64 << 20, device="cuda")
    b = torch.ones_like(a)

    def step():
        for _ in range(10):
            a.add_(b)

    return step


def transformer():
    """Four blocks."""
    return nn.Sequential(*(Block(512, 8) for _ in range(4)))


def training(wrap=lambda model: model):
    """A step of training of a small transformer."""
    return step_of(wrap(transformer().cuda()), (32, 256, 512))


def inference():
    """One batch through the same transformer."""
    model, given = transformer().cuda().eval(), torch.randn(8, 128, 512, device="cuda")

    def step():
        with torch.inference_mode():
            return model(given)

    return step


def graph():
    """The same as a captured graph."""
    return captured(transformer().cuda().eval(), torch.randn(8, 128, 512, device="cuda"))[0]


LOOPS = {
    "matmul": matmul,
    "memory-bound": memory_bound,
    "train": training,
    "train-compiled": lambda: training(torch.compile),
    "infer": inference,
    "graph": graph,
}


FEWEST = 3


def warm(step):
    """Milliseconds of the card for one step."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    begin.record()
    for _ in range(10):
        step()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 10


def main(name, seconds):
    """The first quarter is not counted: the limit learns, and saved time is used up."""
    step = LOOPS[name]()
    card_ms = warm(step)
    print("ready", flush=True)
    sys.stdin.readline()
    began, times = time.perf_counter(), []
    # A few steps at least, however long one takes.
    while (now := time.perf_counter()) < began + seconds or len(times) < FEWEST:
        step()
        torch.cuda.synchronize()
        if now > began + seconds / 4:
            times.append(time.perf_counter() - now)
    rate = len(times) / sum(times)
    times.sort()
    p50, p99 = (1000 * times[len(times) * part // 100] for part in (50, 99))
    busy = min(1, rate * card_ms / 1000)
    print(json.dumps({"per_second": rate, "p50_ms": p50, "p99_ms": p99, "steps": len(times), "busy": busy}))


if __name__ == "__main__":
    torch.manual_seed(1)
    main(sys.argv[1], float(sys.argv[2]))
