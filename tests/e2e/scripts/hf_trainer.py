"""A Hugging Face Trainer on a tiny model from scratch, as people write it for torchrun."""

import os
import sys
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Lines(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        ids = (torch.arange(32) * (number % 7 + 1)) % 97
        return {"input_ids": ids, "labels": ids.clone()}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=6,
            per_device_train_batch_size=4,
            learning_rate=1e-3,
            logging_steps=2,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=not torch.cuda.is_available(),
        )
        config = GPT2Config(vocab_size=97, n_positions=32, n_embd=32, n_layer=2, n_head=2)
        trainer = Trainer(GPT2LMHeadModel(config), arguments, train_dataset=Lines())
        result = trainer.train()
        print(
            f"trainer rank {arguments.process_index} of {arguments.world_size}: "
            f"{result.global_step} steps, mode {arguments.parallel_mode.value}"
        )


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # letting go of gloo's group aborts once in ten runs, under torchrun too
