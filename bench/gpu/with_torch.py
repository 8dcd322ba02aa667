"""PyTorch, one case per process: see frameworks.py. Seeds are fixed, so that both worlds compute the same."""

import json
import os
import sys

import torch
from torch import nn

from torch_models import Block, train

GIB = 1 << 30


def eager():
    """A small network, forwards and backwards, with an allocator that has to grow and shrink."""
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
    losses = train(model, steps=20)
    del model
    torch.cuda.empty_cache()
    asked = "cudaMallocAsync" if "cudaMallocAsync" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") else "native"
    return {"result": losses, "capped": {"allocator": torch.cuda.get_allocator_backend() == asked}}


def graph():
    """A captured step, replayed."""
    model, given = nn.Linear(256, 256).cuda(), torch.randn(64, 256, device="cuda")
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm), torch.no_grad():
        for _ in range(3):
            model(given)
    torch.cuda.current_stream().wait_stream(warm)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured), torch.no_grad():
        found = model(given)
    sums = []
    for n in range(10):
        given.fill_(n)
        captured.replay()
        sums.append(found.sum().item())
    return {"result": sums}


def compiled():
    """torch.compile, which makes Triton kernels."""
    return {"result": train(torch.compile(Block(256)).cuda(), steps=10, shape=(8, 64, 256))}


def transformer():
    """Two blocks trained on a fixed batch, then tokens one after the other."""
    model = nn.Sequential(*(Block(256) for _ in range(2))).cuda()
    losses = train(model, steps=20, shape=(8, 64, 256))
    tokens, made = torch.ones(1, 1, 256, device="cuda"), []
    with torch.no_grad():
        for _ in range(16):
            last = model(tokens)[:, -1:]
            tokens = torch.cat([tokens, last / last.norm()], 1)
            made.append(last.mean().item())
    return {"result": losses + made}


def out_of_memory():
    """More than the slice is refused as PyTorch knows it, and afterwards it works on."""
    refused = False
    try:
        torch.empty(6 * GIB, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        refused = True
    torch.cuda.empty_cache()
    small = torch.ones(1 << 20, device="cuda")
    return {"result": [small.sum().item()], "capped": {"refused": refused}}


def info():
    """What PyTorch takes for the size of the card."""
    torch.ones(1, device="cuda")
    free, total = torch.cuda.mem_get_info()
    whole = torch.cuda.get_device_properties(0).total_memory
    facts = {"total": total == 4 * GIB, "properties": whole == 4 * GIB, "free": free < total}
    return {"result": [1], "capped": facts}


if __name__ == "__main__":
    torch.manual_seed(1)
    print(json.dumps(globals()[sys.argv[1]]()))
