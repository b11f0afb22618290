"""The passes of a torch engine whose weights other ranks hold parts of.

Owns how units are gathered around a pass, what is measured meanwhile, and trying one alone. Doesn't
know what is trained: all weights (`partitioned_engine`) or an adapter (`cut_base_engine`).
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from jupiterd.workers.train.torch.partition.layer_hooks import LayerHooks
from jupiterd.workers.train.torch.partition.recast_weights import recast_weights
from jupiterd.workers.train.torch.partition.unit_exchange import UnitExchange
from jupiterd.workers.train.torch.partition.unit_weights import UnitWeights, with_zeros
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.training_engine import MicroBatch


class GatheringTorchEngine(TorchEngine):
    """One rank that passes batches through weights of which it holds a part."""

    def _gather_by(
        self,
        hooks: LayerHooks,
        weights: UnitWeights,
        exchange: UnitExchange,
        *,
        sums_each_pass: bool,
        recasts: bool,
    ) -> None:
        """Set what gathers.

        sums_each_pass: gradients go to their owners after each, not after the last one alone;
        recasts: weights are cast for each product, and may be cast again on the way back
        """
        self._hooks, self._units, self._exchange = hooks, weights, exchange
        self._sums_each_pass, self._recasts = sums_each_pass, recasts

    def try_pass(self, batch: MicroBatch) -> float:
        """Compute a micro batch's gradient without other ranks; return how long it took, in s."""
        with self._units.filled_by(with_zeros), self._hooks.passing():
            self._hooks.begin(sums=False)
            took_s = super().try_pass(batch)
            self._hooks.end()
        return took_s

    def end_passes(self) -> None:
        """Throw away the gradients of passes that were tried."""
        self._moments_to_come = None
        self._forget_gradients()

    def nats(self, micro_batches: Sequence[MicroBatch]) -> float:
        """Return the summed cross-entropy in nats, without an update and without dropout."""
        with self._hooks.passing():
            self._hooks.begin(sums=False)
            return super().nats(micro_batches)

    def step(
        self, micro_batches: Sequence[MicroBatch], learning_rate: float
    ) -> tuple[float, float]:
        """Take one optimizer step; return this rank's part of the loss, and the gradient's norm."""
        return self._update(self._accumulate(micro_batches), learning_rate)

    def _accumulate(self, micro_batches: Sequence[MicroBatch], *, counts: bool = True) -> Tensor:
        """Leave the batch's gradients where they belong; return this rank's part of the loss."""
        total = torch.zeros((), device=self.device)
        self.computed_s = 0.0
        with self._hooks.passing():
            for number, batch in enumerate(micro_batches, 1):
                is_last = number == len(micro_batches)
                loss = self._pass(batch, counts=counts, is_last=is_last)
                total += loss if counts else 0.0
        return total

    def _pass(self, batch: MicroBatch, *, counts: bool, is_last: bool) -> Tensor:
        """Pass a micro batch through, forwards and backwards; return its part of the loss."""
        began_s = self._time_s() - self._exchange.waited_s
        self._hooks.begin(sums=is_last or self._sums_each_pass)
        with self._keys.of(self._keys_of(batch)):
            with self._saving():
                loss = self._scored(*self._tensors(batch)) / batch.divisor(self.batch_sequences)
            with nullcontext() if counts else self._giving_zeros():
                loss.backward()
        self.computed_s += self._time_s() - self._exchange.waited_s - began_s
        self._hooks.end()
        return loss.detach()

    def _saving(self) -> AbstractContextManager[object]:
        """Enter around a forward pass; layers that are computed again save nothing anyway."""
        saves = self._recasts and self.options.autocast and not self.options.gradient_checkpointing
        return recast_weights() if saves else nullcontext()
