"""PyTorch, one case per process: see frameworks.py. Seeds are fixed, so that both worlds compute the same."""

import json
import os
import sys

import torch
from torch import nn

from torch_models import Block, captured, train

GIB = 1 << 30


def eager():
    """A small network, forwards and backwards, with an allocator that has to grow and shrink."""
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
    losses = train(model, steps=20)
    facts = {"allocator": allocator_as_asked()}
    del model
    torch.cuda.empty_cache()
    return {"result": losses, "limited": facts}


def allocator_as_asked():
    """Whether the allocator is the one that the environment names."""
    asked = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    backend = "cudaMallocAsync" if "cudaMallocAsync" in asked else "native"
    if "expandable_segments" in asked and not any(s.get("is_expandable") for s in torch.cuda.memory_snapshot()):
        return False
    return torch.cuda.get_allocator_backend() == backend


def graph():
    """A captured step, replayed."""
    model, given = nn.Linear(256, 256).cuda(), torch.randn(64, 256, device="cuda")
    replay, found = captured(model, given)
    sums = []
    for n in range(10):
        given.fill_(n)
        replay()
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
    """More than the slice is refused as PyTorch knows it, be it at once or bit by bit, and afterwards it works on."""
    refused, parts = is_refused(6 * GIB), []
    while len(parts) < 20 and not is_refused(GIB // 4, parts):
        pass
    # Of 16 parts the context takes some; without the shim all 20 are had.
    facts = {"refused": refused, "bit_by_bit": 8 <= len(parts) < 16}
    del parts
    torch.cuda.empty_cache()
    return {"result": train(nn.Linear(64, 64).cuda(), steps=5, shape=(8, 64)), "limited": facts}


def is_refused(size, keep=None):
    """Asks for this many bytes, and keeps them if there is a list for it."""
    try:
        had = torch.empty(size, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        return True
    if keep is not None:
        keep.append(had)
    return False


def info():
    """What PyTorch takes for the size of the card."""
    torch.ones(1, device="cuda")
    free, total = torch.cuda.mem_get_info()
    whole = torch.cuda.get_device_properties(0).total_memory
    facts = {"total": total == 4 * GIB, "properties": whole == 4 * GIB, "free": free < total}
    return {"result": [1], "limited": facts}


if __name__ == "__main__":
    torch.manual_seed(1)
    print(json.dumps(globals()[sys.argv[1]]()))
