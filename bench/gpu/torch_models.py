"""The models of with_torch.py and with_torch_loop.py."""

import torch
from torch import nn


class Block(nn.Module):
    """One block of a transformer."""

    def __init__(self, width, heads=4):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.rest = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, given):
        """Attention, then the two layers, each added to what came in."""
        normed = self.first(given)
        given = given + self.attention(normed, normed, normed, need_weights=False)[0]
        return given + self.rest(self.second(given))


def step_of(model, shape):
    """One step of training on a fixed batch, as a function that answers the loss on the card."""
    given, wanted = torch.randn(shape, device="cuda"), torch.randn(shape, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step():
        loss = nn.functional.mse_loss(model(given), wanted)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def train(model, steps, shape=(64, 512)):
    """The losses of this many steps."""
    step = step_of(model, shape)
    return [step().item() for _ in range(steps)]


def captured(model, given):
    """A graph of the model at work on `given`: what replays it, and where its answer lies."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside), torch.no_grad():
        for _ in range(3):
            model(given)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        answer = model(given)
    return graph.replay, answer
