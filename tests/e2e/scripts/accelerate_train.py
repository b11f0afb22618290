"""A loop with accelerate, as people write it for `accelerate launch` or torchrun."""

import os
import sys

import torch
from accelerate import Accelerator
from torch import nn


def main() -> None:
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))
    data = torch.utils.data.TensorDataset(torch.randn(64, 16), torch.randn(64, 1))
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    batches = 0
    for x, y in loader:
        optimizer.zero_grad()
        accelerator.backward(nn.functional.mse_loss(model(x), y))
        optimizer.step()
        batches += 1
    everybodys = accelerator.gather(torch.tensor([batches], device=accelerator.device))
    print(
        f"accelerate rank {accelerator.process_index} of {accelerator.num_processes}: "
        f"{accelerator.distributed_type.value}, batches {everybodys.tolist()}"
    )


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # letting go of gloo's group aborts once in ten runs, under torchrun too
