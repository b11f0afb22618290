"""Training on torch: one rank's model and optimizer, and its step.

Owns what torch computes. Doesn't know files, the daemon, or how the ranks met (`group`).

The loss is the mean cross-entropy over the tokens of the global batch, however many ranks and micro
batches share it: each micro batch's sum is divided by the global number of tokens, and the ranks'
gradients, which DistributedDataParallel averages, are multiplied by their number beforehand.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config

from jupiterd.cycle.plan import ModelShape, TrainPlan
from jupiterd.workers.train.engine import (
    BETAS,
    EPSILON,
    MOMENTS,
    MicroBatch,
    Tensors,
    Updating,
    is_decayed,
)
from jupiterd.workers.train.group import Group
from jupiterd.workers.train.torch_model import make_model

TIED_WEIGHT = "lm_head.weight"


class TorchEngine:
    """One rank on torch."""

    def __init__(
        self, shape: ModelShape, plan: TrainPlan, end_token: int, group: Group, device: str
    ) -> None:
        self.updating: Updating = nullcontext
        self._plan = plan
        self._group = group
        self._model = make_model(shape, plan.seed, end_token)
        nn.Module.to(self._model, device)
        self._optimizer = make_optimizer(self._model, plan)
        self._joined: nn.Module = self._model
        self.device = device
        self.rank, self.world_size = group.rank, group.world_size
        self.name = "torch/gloo" if group.world_size > 1 else "torch"
        self.config: Qwen3Config = self._model.config

    def weights(self) -> Tensors:
        """Return the weights as they are now, tied ones once."""
        return _arrays(self._tensors())

    def load_weights(self, weights: Tensors) -> None:
        """Take over weights of the same names and shapes."""
        with torch.no_grad():
            for name, parameter in self._tensors().items():
                parameter.copy_(torch.from_numpy(weights[name]))

    def moments(self) -> Tensors:
        """Return AdamW's moments; none before the first step."""
        state = self._optimizer.state
        return _arrays(
            {
                f"{moment}.{name}": state[parameter][moment]
                for name, parameter in self._model.named_parameters()
                for moment in MOMENTS
                if parameter in state
            }
        )

    def load_moments(self, moments: Tensors, step: int) -> None:
        """Go on with moments as they were after `step` steps."""
        for name, parameter in self._model.named_parameters():
            place = parameter.device
            self._optimizer.state[parameter] = {
                "step": torch.tensor(float(step), device=place),
                **{m: torch.tensor(moments[f"{m}.{name}"], device=place) for m in MOMENTS},
            }

    def random_state(self) -> str:
        """Return the state of torch's CPU generator."""
        return bytes(torch.get_rng_state().tolist()).hex()

    def load_random_state(self, state: str) -> None:
        """Take over the state of a CPU generator; MLX writes none."""
        if state:
            torch.set_rng_state(torch.frombuffer(bytearray.fromhex(state), dtype=torch.uint8))

    def begin(self, agreement: Mapping[str, Any]) -> None:  # noqa: ARG002 - torch compares itself
        """Wrap the model, which sends rank 0's weights to all and compares their shapes."""
        self._joined = self._group.join(self._model)

    def step(
        self, micro_batches: Sequence[MicroBatch], learning_rate: float
    ) -> tuple[float, float]:
        """Take one optimizer step; return this rank's part of the loss, and the gradient's norm."""
        for settings in self._optimizer.param_groups:
            settings["lr"] = learning_rate
        share = self._accumulate(micro_batches)
        norm = self._clip()
        with self.updating():
            self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=False)
        return float(share), float(norm)

    def agree(self, loss: float, *, wants_stop: bool) -> tuple[float, bool]:
        """Return the sum of all ranks' parts of the loss, and whether any of them wants to stop."""
        return self._group.agree(loss, wants_stop=wants_stop)

    def _accumulate(self, micro_batches: Sequence[MicroBatch]) -> Tensor:
        """Leave the batch's gradients in the parameters; return this rank's part of the loss."""
        total = torch.zeros((), device=self.device)
        for number, (inputs, targets) in enumerate(micro_batches, 1):
            global_tokens = self._plan.batch_sequences * inputs.shape[1]
            with self._group.accumulating(is_last=number == len(micro_batches)):
                logits = self._joined(
                    input_ids=torch.from_numpy(inputs).to(self.device), use_cache=False
                ).logits
                wanted = torch.from_numpy(targets).to(self.device).flatten()
                loss = nn.functional.cross_entropy(
                    logits.flatten(0, 1).float(), wanted, reduction="sum"
                )
                (loss * (self.world_size / global_tokens)).backward()
            total += loss.detach() / global_tokens
        return total

    def _clip(self) -> Tensor:
        """Shorten the gradient where it is too long; return its length before.

        Measured row by row, and the rows in float64: torch adds up half a million squares in one go
        with an error of a ten-thousandth, and then every step is clipped a little differently than
        on MLX.
        """
        parameters = list(self._model.parameters())
        rows = [
            torch.linalg.vector_norm(parameter.grad, dim=-1).flatten()
            for parameter in parameters
            if parameter.grad is not None
        ]
        norm = torch.linalg.vector_norm(torch.cat(rows).to("cpu", torch.float64))
        nn.utils.clip_grads_with_norm_(parameters, self._plan.clip_norm, norm)
        return norm

    def _tensors(self) -> dict[str, Tensor]:
        tensors: dict[str, Tensor] = dict(self._model.state_dict())
        if self.config.tie_word_embeddings:
            del tensors[TIED_WEIGHT]
        return tensors


def make_optimizer(model: nn.Module, plan: TrainPlan) -> torch.optim.AdamW:
    """Return AdamW that decays matrices, and neither embeddings nor norms."""
    named = dict(model.named_parameters())
    decayed = [p for name, p in named.items() if is_decayed(name, p.ndim)]
    others = [p for name, p in named.items() if not is_decayed(name, p.ndim)]
    groups = [
        {"params": decayed, "weight_decay": plan.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=plan.learning_rate, betas=BETAS, eps=EPSILON, fused=True)


def _arrays(tensors: Mapping[str, Tensor]) -> Tensors:
    return {name: t.detach().to("cpu").contiguous().numpy() for name, t in tensors.items()}
