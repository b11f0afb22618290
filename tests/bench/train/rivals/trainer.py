"""Hugging Face's Trainer over the same tokens: what ours is measured against.

Owns its settings: the ones with which it is fastest here. Doesn't know ours, nor who measures.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from tests.bench.train.moment import Moment, now


class Sequences(Dataset[dict[str, torch.Tensor]]):
    """The tokens of one file as sequences of one length."""

    def __init__(self, tokens: Path, seq_len: int) -> None:
        self._data, self._seq_len = np.memmap(tokens, dtype=np.uint16, mode="r"), seq_len

    def __len__(self) -> int:
        return (len(self._data) - 1) // self._seq_len

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        start = number * self._seq_len
        ids = torch.from_numpy(self._data[start : start + self._seq_len].astype(np.int64))
        return {"input_ids": ids, "labels": ids}


class StepEnds(TrainerCallback):
    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self._ended()


def trainer_steps(
    model: Any, tokens: Path, batch: tuple[int, int, int], steps: int
) -> list[Moment]:
    """Train so many steps; return when each was done."""
    ends: list[Moment] = []
    run_trainer(model, tokens, batch, steps, lambda: ends.append(now()))
    return ends


def run_trainer(
    model: Any, tokens: Path, batch: tuple[int, int, int], steps: int, ended: Callable[[], None]
) -> None:
    """Train so many steps; `ended` is called after each. Nothing is written."""
    micro_batches, sequences, length = batch
    arguments = TrainingArguments(
        output_dir=str(tokens.parent / "trainer"),
        max_steps=steps,
        per_device_train_batch_size=sequences,
        gradient_accumulation_steps=micro_batches,
        learning_rate=1e-3,
        weight_decay=0.1,
        adam_beta2=0.95,
        max_grad_norm=1.0,
        optim="adamw_torch_fused",
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(model, arguments, train_dataset=Sequences(tokens, length))
    trainer.add_callback(StepEnds(ended))
    trainer.remove_callback(PrinterCallback)  # or it prints a summary of every run
    trainer.train()
