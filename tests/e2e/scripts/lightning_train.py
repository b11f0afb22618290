"""A Lightning trainer, as people write it for torchrun."""

import os
import sys

import lightning
import torch
from torch import nn


class Line(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def training_step(self, batch: list[torch.Tensor], _number: int) -> torch.Tensor:
        return nn.functional.mse_loss(self.layer(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main() -> None:
    lightning.seed_everything(1, verbose=False)
    data = torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=int(os.environ["LOCAL_WORLD_SIZE"]),
        strategy="ddp",
        max_steps=4,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Line(), torch.utils.data.DataLoader(data, batch_size=8))
    print(f"lightning rank {trainer.global_rank} of {trainer.world_size}: {trainer.global_step}")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # letting go of gloo's group aborts once in ten runs, under torchrun too
