"""The training engine on torch where an adapter is trained beside a base that is cut over ranks.

Owns what is done otherwise than beside a whole base. The adapter is whole on every rank, and so are
its gradients and moments: so are checkpoints and whatever else is done with weights. Doesn't know
when the base is gathered (`gathering_engine`).
"""

from typing import Final

import numpy as np
import torch
import torch.distributed
from numpy.typing import NDArray
from torch import Tensor, nn

from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.errors import Bug
from jupiterd.workers.memory_room import hand_back_large_blocks
from jupiterd.workers.train.architectures.skeleton import skeleton
from jupiterd.workers.train.first_magnitudes import first_magnitude
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.torch.device import abilities
from jupiterd.workers.train.torch.partition.cut_base import CutBase
from jupiterd.workers.train.torch.partition.cut_options import cut_options
from jupiterd.workers.train.torch.partition.gathering_engine import GatheringTorchEngine
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_adapter import adapt
from jupiterd.workers.train.torch.torch_dropout import TokenKeys
from jupiterd.workers.train.torch.torch_model import inner_model, model_without_memory
from jupiterd.workers.train.torch.torch_optimizer import TorchOptimizer
from jupiterd.workers.training_engine import MicroBatch, Sequence, Tensors

_KINDS: Final = {"fp32": torch.float32, "bf16": torch.bfloat16}


class CutBaseTorchEngine(GatheringTorchEngine):
    """One rank's adapter on torch, and its part of the base."""

    def __init__(
        self,
        shape: ModelShape,
        plan: TrainPlan,
        end_token: int,
        group: ProcessGroup,
        device: str,
        partition: Partition,
    ) -> None:
        self._shape, self._plan, self.base_partition = shape, plan, partition
        self.abilities = abilities(device)
        self.options = cut_options(self.abilities, shape, plan, partition, group.rank)
        self.adapter, self._keys = plan.options.adapter, TokenKeys()
        self._model = model_without_memory(shape, end_token, self.options)
        kind = _KINDS[self.options.precision]
        self._base = CutBase(self._model, partition, group, device, kind)
        if device == "cpu":
            hand_back_large_blocks(self._base.least_gathered_bytes)
        self._parameters = adapt(inner_model(self._model), self._own_adapter(), self._keys)
        self.load_weights(first_weights(self.shapes, plan.seed))
        nn.Module.to(self._model, device)
        self._gradient = _shared_gradient(self._parameters, device)
        self._optimizer = TorchOptimizer(self._parameters, plan)
        self._attach(group, device)
        base = self._base
        self._gather_by(
            base.hooks, base.weights, base.exchange, sums_each_pass=False, recasts=False
        )

    def _own_adapter(self) -> AdapterOptions:
        if self.adapter is None:
            raise Bug("a base is cut that no adapter is trained beside")
        return self.adapter

    @torch.no_grad()
    def load_base(self, weights: Tensors) -> None:
        """Fill our part of the frozen model, and the magnitudes that begin with all of it."""
        self._base.take(weights)
        turned = skeleton(self.config).turned
        for name in weights if self._own_adapter().dora else ():
            if first := first_magnitude(name, weights, self._parameters, turned):
                self._parameters[first[0]].copy_(torch.from_numpy(first[1]))

    def base_digest(self) -> str:
        """Return nothing: no matrix is quantized."""
        return ""

    def begin(self, *, has_same_weights: bool) -> None:
        """Give all ranks rank 0's adapter, where theirs may differ."""
        if has_same_weights or self.world_size == 1:
            return
        with torch.no_grad():
            for parameter in self._parameters.values():
                torch.distributed.broadcast(parameter.data, src=0)

    def logits(
        self,
        tokens: NDArray[np.int64],  # noqa: ARG002 - the engines' port
        weights: Tensors | None,  # noqa: ARG002
    ) -> NDArray[np.float32]:
        """Refuse: islands alone compare their models by logits, and their bases are whole."""
        raise Bug("a base that is cut over ranks has no logits of one rank's")

    def _accumulate(self, micro_batches: Sequence[MicroBatch], *, counts: bool = True) -> Tensor:
        """Leave the sum of all ranks' gradients in the parameters; return our part of the loss."""
        total = super()._accumulate(micro_batches, counts=counts)
        if self.world_size > 1:
            torch.distributed.all_reduce(self._gradient)
        return total

    def _forget_gradients(self) -> None:
        self._gradient.zero_()


def _shared_gradient(parameters: dict[str, nn.Parameter], device: str) -> Tensor:
    """Return one vector that all gradients are views of, so that one message sums them."""
    sizes = [parameter.numel() for parameter in parameters.values()]
    flat = torch.zeros(sum(sizes), device=device)
    for parameter, part in zip(parameters.values(), flat.split(sizes), strict=True):
        parameter.grad = part.view(parameter.shape)
    return flat
