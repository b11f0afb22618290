"""Data-parallel training with mlx.distributed, as people write it for mlx.launch."""

import argparse
import time

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--warm-up", type=int, default=2)
    told = parser.parse_args()

    group = mx.distributed.init()
    rank, world = group.rank(), group.size()
    print(f"mlx rank {rank} of {world} started")
    mx.random.seed(1)
    model = nn.Sequential(nn.Linear(32, told.width), nn.ReLU(), nn.Linear(told.width, 1))
    optimizer = optim.SGD(learning_rate=0.01)
    mx.eval(model.parameters())
    mx.random.seed(100 + rank)
    x, y = mx.random.normal((told.batch, 32)), mx.random.normal((told.batch, 1))
    gradients_of = nn.value_and_grad(model, lambda: nn.losses.mse_loss(model(x), y))
    began_s, loss = 0.0, mx.array(0.0)
    for step in range(told.steps):
        if step == told.warm_up:
            began_s = time.perf_counter()
        loss, gradients = gradients_of()
        optimizer.update(model, nn.average_gradients(gradients))
        mx.eval(loss, model.parameters(), optimizer.state)
    elapsed_s = time.perf_counter() - began_s
    samples = (told.steps - told.warm_up) * told.batch * world
    sums = mx.array([sum(float(p.sum()) for _, p in tree_flatten(model.parameters()))])
    everybodys = mx.distributed.all_gather(sums) if world > 1 else sums
    mx.eval(everybodys)
    equal = len(set(everybodys.tolist())) == 1
    print(f"mlx loss {loss.item():.4f}, {samples / elapsed_s:.1f} tokens/s")
    print(f"mlx rank {rank}: weights equal: {equal}")


if __name__ == "__main__":
    main()
