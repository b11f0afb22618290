"""The training loop.

Owns the order of things within a step. Doesn't know the gang's rendezvous, the daemon, or files:
what it needs of them comes in as `Group`, `Batches` and callbacks.

The loss is the mean cross-entropy over the tokens of the global batch, however many ranks and micro
batches share it: each micro batch's sum is divided by the global number of tokens, and the ranks'
gradients, which DistributedDataParallel averages, are multiplied by their number beforehand.
"""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from transformers.models.qwen3.modeling_qwen3 import Qwen3ForCausalLM

from jupiterd.cycle.plan import TrainPlan
from jupiterd.errors import WorkFailedError
from jupiterd.workers.train.batches import Batches
from jupiterd.workers.train.group import Group

BETAS = (0.9, 0.95)
WINDOW_STEPS = 20
"""Steps over which the loss of a checkpoint and the rate are averaged."""


@dataclass(frozen=True)
class StepDone:
    """What is known after a step; the same on every rank."""

    step: int
    """Steps of the round that are done."""
    cursor: int
    loss: float
    mean_loss: float
    """Over the last WINDOW_STEPS steps."""
    learning_rate: float
    grad_norm: float
    """Before clipping."""
    tokens_per_s: float
    """Of all ranks together."""
    is_last: bool
    """Nothing follows: the round is done, or a rank was told to stop."""


def make_optimizer(model: nn.Module, plan: TrainPlan) -> torch.optim.AdamW:
    """Return AdamW that decays matrices, and neither embeddings nor norms."""
    named = dict(model.named_parameters())
    decayed = [p for name, p in named.items() if p.ndim > 1 and "embed" not in name]
    others = [p for name, p in named.items() if p.ndim <= 1 or "embed" in name]
    groups = [
        {"params": decayed, "weight_decay": plan.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=plan.learning_rate, betas=BETAS, fused=True)


@dataclass(frozen=True)
class TrainingLoop:
    """One rank's part in the steps of a round."""

    model: Qwen3ForCausalLM
    optimizer: torch.optim.Optimizer
    plan: TrainPlan
    batches: Batches
    group: Group
    stop_requested: Callable[[], bool]
    step_done: Callable[[StepDone], None]

    def run(self, first_step: int) -> None:
        """Train from `first_step` to the end of the plan, or until any rank is told to stop.

        Raises:
            WorkFailedError: the loss is no longer a number.
        """
        model, plan = self.group.join(self.model), self.plan
        schedule = plan.schedule()
        losses: deque[float] = deque(maxlen=WINDOW_STEPS)
        times: deque[float] = deque([time.monotonic()], maxlen=WINDOW_STEPS + 1)
        for step in range(first_step, plan.steps):
            learning_rate = schedule.learning_rate(step)
            for settings in self.optimizer.param_groups:
                settings["lr"] = learning_rate
            loss_share = self._accumulate(model, step * plan.batch_sequences)
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), plan.clip_norm)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=False)
            loss, stop = self.group.agree(loss_share, wants_stop=self.stop_requested())
            if not math.isfinite(loss):
                raise WorkFailedError(f"the loss is {loss} at step {step}", "lower learning_rate")
            losses.append(loss)
            times.append(time.monotonic())
            self.step_done(
                StepDone(
                    step=step + 1,
                    cursor=(step + 1) * plan.batch_sequences,
                    loss=loss,
                    mean_loss=sum(losses) / len(losses),
                    learning_rate=learning_rate,
                    grad_norm=float(norm),
                    tokens_per_s=self._rate(times),
                    is_last=stop or step + 1 == plan.steps,
                )
            )
            if stop:
                return

    def _accumulate(self, model: nn.Module, cursor: int) -> torch.Tensor:
        """Leave the batch's gradients in the parameters; return this rank's share of the loss."""
        global_tokens = self.plan.batch_sequences * self.batches.shards.seq_len
        device = self.model.device
        micro_batches = list(self.batches.at(cursor))
        total = torch.zeros((), device=device)
        for number, (inputs, targets) in enumerate(micro_batches, 1):
            with self.group.accumulating(is_last=number == len(micro_batches)):
                logits = model(input_ids=inputs.to(device), use_cache=False).logits
                share = nn.functional.cross_entropy(
                    logits.flatten(0, 1).float(), targets.to(device).flatten(), reduction="sum"
                )
                (share * (self.group.world_size / global_tokens)).backward()
            total += share.detach() / global_tokens
        return total

    def _rate(self, times: deque[float]) -> float:
        tokens = (len(times) - 1) * self.plan.batch_sequences * self.batches.shards.seq_len
        return tokens / max(times[-1] - times[0], 1e-9)
