"""A model and its loss as one module: one graph where the options say that it is compiled.

Owns the way from token ids to a loss, and what of it is compiled together. Doesn't know optimizers,
ranks or steps.

One graph saves launches and lets the compiler fuse what lies between the last layer and the loss;
beside compiling both apart it was 1.2 to 1.5 times as fast (`docs/benchmarks.md`). A graph has
fixed sizes. Where sizes change from step to step (ranks share a batch by their speed, or answers
alone count), the body is compiled for any size, and the loss computes its chunks one by one.
"""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from jupiterd.cycle.training.engine_options import ResolvedOptions
from jupiterd.cycle.training.memory import logit_chunk_tokens
from jupiterd.workers.train.torch.chunked_loss import (
    SoftmaxError,
    cross_entropy,
    loss_alone,
    softmax_error,
)
from jupiterd.workers.train.torch.graph_cache import keep_graphs_of_losses
from jupiterd.workers.train.torch.torch_model import CausalModel

_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

WHOLE_SHAPES = 2
"""Sizes of micro batches that get a graph of their own: a batch that isn't a multiple of the micro
batch is cut into pieces of two sizes. Each further one would cost another compilation."""

HiddenStates = Callable[[Tensor, Tensor | None], Tensor]
"""Token ids and bounds of documents -> the last hidden states, see `CausalModel.hidden`."""


class LossModel(nn.Module):
    """A model and its loss, which DistributedDataParallel wraps."""

    def __init__(
        self,
        model: nn.Module,
        options: ResolvedOptions,
        device: str,
        chunk_tokens: int = 0,
        *,
        is_shared: bool = False,
    ) -> None:
        """chunk_tokens: whose logits exist at a time, 0: as many as fit everywhere.

        is_shared: other ranks take part, so this one's share of a batch changes
        """
        super().__init__()
        self.model = model
        self._kind = torch.device(device).type
        self._compute = _TYPES[options.precision]
        self._autocast = options.autocast and options.weights == "fp32"
        called = self._called
        self.chunk_tokens = chunk_tokens or logit_chunk_tokens(len(called.output_weight))
        self._shapes: set[tuple[torch.Size, ...]] = set()
        self._hidden: HiddenStates = called.hidden
        self._error_of: SoftmaxError = softmax_error
        self._whole: Callable[[Tensor, Tensor, Tensor | None], Tensor] | None = None
        if options.compile:
            self._compile(is_whole=not is_shared)

    def forward(
        self,
        ids: Tensor,
        targets: Tensor,
        documents: Tensor | None = None,
        counted: Tensor | None = None,
    ) -> Tensor:
        """Return the sum of the cross-entropies, in nats.

        ids, targets, and the document of each input: [sequences, tokens]; counted: the places of
        the targets that count, of all sequences one after the other; None: all do
        """
        bounds = None if documents is None else self._called.bounds(documents)
        if self._whole is not None and counted is None and self._has_graph(ids, bounds):
            return self._whole(ids, targets, bounds)
        hidden = self._states(self._hidden, ids, bounds)
        hidden, wanted, weight = _counting(hidden, targets.flatten(), counted)
        return self._loss(hidden, wanted, self._error_of) * weight

    def without_graphs(
        self,
        ids: Tensor,
        targets: Tensor,
        documents: Tensor | None = None,
        counted: Tensor | None = None,
    ) -> Tensor:
        """Return the same, with its gradient, without compiled kernels."""
        hidden, wanted, weight = self._uncompiled(ids, targets, documents, counted)
        return self._loss(hidden, wanted, softmax_error) * weight

    @torch.no_grad()
    def nats(
        self,
        ids: Tensor,
        targets: Tensor,
        documents: Tensor | None = None,
        counted: Tensor | None = None,
    ) -> float:
        """Return the same sum without compiled kernels."""
        model = self._called
        hidden, wanted, weight = self._uncompiled(ids, targets, documents, counted)
        if not model.is_plain:
            return float(self._loss_by_parts(hidden, wanted)) * weight
        tokens, matrix = self.chunk_tokens, model.output_weight
        return float(loss_alone(hidden, matrix, wanted, self._compute, tokens)) * weight

    def _uncompiled(
        self, ids: Tensor, targets: Tensor, documents: Tensor | None, counted: Tensor | None
    ) -> tuple[Tensor, Tensor, float]:
        """Return the states and targets that count, and what their loss is multiplied with."""
        bounds = None if documents is None else self._called.bounds(documents)
        hidden = self._states(self._called.hidden, ids, bounds)
        return _counting(hidden, targets.flatten(), counted)

    @property
    def _called(self) -> CausalModel:
        return cast("CausalModel", self.model)

    def _compile(self, *, is_whole: bool) -> None:
        keep_graphs_of_losses()
        is_mixed = self._autocast and self._called.output_weight.dtype != torch.float32
        with torch.autocast(self._kind, dtype=self._compute, enabled=is_mixed):
            _ = self._called.is_plain  # found out by trying, which no graph can hold
        self._hidden = torch.compile(self._called.hidden)
        self._error_of = torch.compile(softmax_error)
        if is_whole:
            self._whole = torch.compile(self._sum, dynamic=False)

    def _has_graph(self, ids: Tensor, bounds: Tensor | None) -> bool:
        """Say whether sizes like these have a graph, or may have one; the first ones may."""
        shape = (ids.shape,) if bounds is None else (ids.shape, bounds.shape)
        if len(self._shapes) < WHOLE_SHAPES:
            self._shapes.add(shape)
        return shape in self._shapes

    def _sum(self, ids: Tensor, targets: Tensor, bounds: Tensor | None) -> Tensor:
        """Return the sum over all targets: what one graph computes."""
        hidden = self._states(self._called.hidden, ids, bounds)
        return self._loss(hidden, targets.flatten(), softmax_error)

    def _states(self, hidden_of: HiddenStates, ids: Tensor, bounds: Tensor | None) -> Tensor:
        with torch.autocast(self._kind, dtype=self._compute, enabled=self._autocast):
            return hidden_of(ids, bounds).flatten(0, 1)

    def _loss(self, hidden: Tensor, wanted: Tensor, error_of: SoftmaxError) -> Tensor:
        if not self._called.is_plain:
            return self._loss_by_parts(hidden, wanted)
        matrix = self._called.output_weight
        return cross_entropy(hidden, matrix, wanted, self._compute, self.chunk_tokens, error_of)

    def _loss_by_parts(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the sum over parts of the logits, to save memory; each part is computed twice."""
        tokens = self.chunk_tokens
        parts = zip(hidden.split(tokens), targets.split(tokens), strict=True)
        losses = [checkpoint(self._loss_of, *part, use_reentrant=False) for part in parts]
        return torch.stack(cast("list[Tensor]", losses)).sum()

    def _loss_of(self, hidden: Tensor, targets: Tensor) -> Tensor:
        with torch.autocast(self._kind, dtype=self._compute, enabled=self._autocast):
            logits = self._called.logits(hidden)
        return functional.cross_entropy(logits.float(), targets, reduction="sum")


def _counting(
    hidden: Tensor, targets: Tensor, counted: Tensor | None
) -> tuple[Tensor, Tensor, float]:
    """Return the rows that count, and what their loss counts: nothing where none does.

    One row is computed even then: every rank's gradients are waited for.
    """
    if counted is None:
        return hidden, targets, 1.0
    rows = counted if len(counted) else counted.new_zeros(1)
    return hidden[rows], targets[rows], float(len(counted) > 0)
