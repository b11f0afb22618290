"""A small GPT under DDP, as people write it for torchrun; knows nothing of Jupiter."""

import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

VOCABULARY = 256


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.before_mlp(x))


class Gpt(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.blocks(x))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--warm-up", type=int, default=2)
    told = parser.parse_args()

    is_cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if is_cuda else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if is_cuda else "cpu"
    print(f"rank {rank} of {world} started, pid {os.getpid()}")
    torch.manual_seed(1)
    model = DistributedDataParallel(Gpt(told.layers, told.width, 4, told.length).to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(100 + rank)
    text = torch.randint(0, 32, (told.batch, told.length + 1), generator=generator).to(device)
    began_s, loss = 0.0, torch.tensor(0.0)
    for step in range(told.steps):
        if step == told.warm_up:
            began_s = time.perf_counter()
        logits = model(text[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    elapsed_s = time.perf_counter() - began_s
    tokens = (told.steps - told.warm_up) * told.batch * told.length * world
    weights = torch.cat([p.detach().flatten() for p in model.parameters()]).double().sum()
    everybodys = [torch.zeros_like(weights) for _ in range(world)]
    dist.all_gather(everybodys, weights)
    print(f"loss {loss.item():.4f}, {tokens / elapsed_s:.1f} tokens/s")
    print(f"weights equal: {all(bool(w == weights) for w in everybodys)}")
    sys.stdout.flush()
    os._exit(0)  # destroying gloo's group aborts once in ten runs, under torchrun too


if __name__ == "__main__":
    main()
