"""PyTorch for a while: `with_torch_loop.py LOOP SECONDS` prints steps per second, the 99th percentile of a step's time,
and the part of the time in which the card was busy by its own events (which says something without a limit only).
"""

import json
import sys
import time

import torch
from torch import nn

from torch_models import Block, step_of


def matmul():
    """bf16 products that fill the card."""
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    b, out = torch.randn_like(a), torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out)


def training(wrap=lambda model: model):
    """A step of training of a small transformer."""
    model = wrap(nn.Sequential(*(Block(512, 8) for _ in range(4)))).cuda()
    return step_of(model, (32, 256, 512))


def inference():
    """One batch through the same transformer."""
    model = nn.Sequential(*(Block(512, 8) for _ in range(4))).cuda().eval()
    given = torch.randn(8, 128, 512, device="cuda")

    def step():
        with torch.inference_mode():
            return model(given)

    return step


LOOPS = {"matmul": matmul, "train": training, "train-compiled": lambda: training(torch.compile), "infer": inference}


def main(name, seconds):
    """The first quarter is not counted: the limit learns, and saved time is used up."""
    step, start_event, end_event = LOOPS[name](), *(torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    start_event.record()
    for _ in range(10):
        step()
    end_event.record()
    torch.cuda.synchronize()
    card_ms = start_event.elapsed_time(end_event) / 10
    began, times = time.perf_counter(), []
    while (now := time.perf_counter()) < began + seconds:
        step()
        torch.cuda.synchronize()
        if now > began + seconds / 4:
            times.append(time.perf_counter() - now)
    rate = len(times) / sum(times)
    p99 = 1000 * sorted(times)[len(times) * 99 // 100]
    print(json.dumps({"per_second": rate, "p99_ms": p99, "busy": min(1, rate * card_ms / 1000)}))


if __name__ == "__main__":
    torch.manual_seed(1)
    main(sys.argv[1], float(sys.argv[2]))
