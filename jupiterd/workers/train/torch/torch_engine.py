"""The training engine on torch: one rank's model, optimizer and step.

Owns what torch computes. Doesn't know files, the daemon, or the rendezvous of ranks (`group`).

The loss is the mean cross-entropy over the tokens of the global batch, however many ranks and micro
batches share it: each micro batch's sum is divided by the global number of tokens, and the ranks'
gradients, which DistributedDataParallel averages, are multiplied by their number beforehand.
"""

import math
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jupiterd.cycle.training.memory import logit_chunk_on, optimizer_bytes, options_on
from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.workers.memory_room import hand_back_large_blocks
from jupiterd.workers.train.architectures.skeleton import skeleton
from jupiterd.workers.train.first_magnitudes import first_magnitude
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.torch.compute_clock import ComputeClock
from jupiterd.workers.train.torch.device import abilities, gpus_of, peak_of, platform_of
from jupiterd.workers.train.torch.gradient_clip import length_of, shorten, shorten_unread
from jupiterd.workers.train.torch.loss_model import LossModel
from jupiterd.workers.train.torch.loss_scale import SMALLEST, LossScale
from jupiterd.workers.train.torch.nccl import GLOO
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_adapter import (
    adapt,
    frozen_as_everywhere,
    keep_in_bf16,
    parameter_path,
)
from jupiterd.workers.train.torch.torch_dropout import TokenKeys, as_int32
from jupiterd.workers.train.torch.torch_model import (
    CausalModel,
    empty_model,
    inner_model,
    last_logits,
    learn_used_rows,
    make_model,
    named_parameters,
    without_flash,
)
from jupiterd.workers.train.torch.torch_optimizer import TorchOptimizer
from jupiterd.workers.train.torch.torch_quantized import QuantizedMatrices
from jupiterd.workers.training_engine import (
    LOSS_SCALE,
    Gradients,
    MicroBatch,
    NamedTensor,
    Rows,
    TensorPiece,
    Tensors,
    Updating,
)


class TorchEngine:
    """One rank on torch."""

    partition: Partition | None = None
    base_partition: Partition | None = None

    def __init__(
        self, shape: ModelShape, plan: TrainPlan, end_token: int, group: ProcessGroup, device: str
    ) -> None:
        self._shape, self._plan = shape, plan
        self.abilities = found = abilities(device)
        self.options = options_on(found, shape, plan)
        self.adapter, self._keys = plan.options.adapter, TokenKeys()
        bits = 0 if self.adapter is None else self.adapter.bits
        if device == "cpu" and (self.options.gradient_checkpointing or bits):
            hand_back_large_blocks()  # who asks for these wants memory rather than speed
        self._model = self._new_model(end_token)
        self._quantized = QuantizedMatrices(inner_model(self._model), bits)
        self._parameters = self._all = named_parameters(self._model)
        if self.adapter is not None:
            self._parameters = adapt(inner_model(self._model), self.adapter, self._keys)
            self.load_weights(first_weights(_shapes(self._parameters), plan.seed))
            if self.options.precision == "bf16":  # before a GPU has to hold them
                keep_in_bf16(self._all.values())
        nn.Module.to(self._model, device)
        if device == "cpu" and group.world_size == 1 and not self.options.compile:
            learn_used_rows(self._model)  # ranks share gradients of one kind, and so do compilers
        if self.options.weights == "bf16":
            # The parameters alone: angles of positions need all of their digits.
            for parameter in self._parameters.values():
                parameter.data = parameter.data.to(torch.bfloat16)
        self._optimizer = TorchOptimizer(self._parameters, plan)
        self._attach(group, device)

    def _attach(self, group: ProcessGroup, device: str) -> None:
        """Put model and optimizer together with their loss, the device and the other ranks."""
        self.updating: Updating = nullcontext
        self._group = group
        self._scale = LossScale()
        self._copy_stream: torch.cuda.Stream | None = None
        self._moments_to_come: Tensor | None = None
        """Takes their memory while passes are tried."""
        self._length = length_of
        self._leaves_out_on_device = self._optimizer.can_leave_out and bool(gpus_of(device))
        chunk = logit_chunk_on(self.abilities, self._shape, self._plan, self.options)
        is_shared = group.world_size > 1
        self._scored = LossModel(self._model, self.options, device, chunk, is_shared=is_shared)
        self._loss: nn.Module = self._scored
        self.device = device
        self.platform, self.gpus = platform_of(device), gpus_of(device)
        self.peak_flops_per_s = peak_of(self.gpus)
        self.versions: Mapping[str, str] = {}  # its wheels have other versions for each device
        self.batch_sequences, self.computed_s = self._plan.batch_sequences, 0.0
        trained = [p for p in self._parameters.values() if p.requires_grad]
        self._clock = ComputeClock(trained, device)
        self.rank, self.world_size = group.rank, group.world_size
        self.name = f"torch/{group.backend or GLOO}" if group.world_size > 1 else "torch"
        self.config = cast("CausalModel", self._model).config

    def _new_model(self, end_token: int) -> nn.Module:
        """Return the model with its first weights; a frozen one has none, or isn't there yet."""
        if self.adapter is None:
            return make_model(self._shape, self._plan.seed, end_token, self.options)
        is_quantized = self.adapter.bits > 0
        return empty_model(self._shape, end_token, self.options, without_matrices=is_quantized)

    def memory_used_bytes(self) -> int:
        """Return the bytes of GPU memory in use; 0 for a CPU."""
        return torch.cuda.memory_allocated(self.device) if self.gpus else 0

    def weights(self) -> Tensors:
        """Return the weights; tied ones appear once."""
        return _arrays(self._parameters)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return name -> shape of the trained weights."""
        return _shapes(self._parameters)

    def each_weight(self) -> Iterator[NamedTensor]:
        """Yield the weights one by one."""
        yield from self.weights().items()

    def each_moment(self) -> Iterator[NamedTensor]:
        """Yield the optimizer's state one by one."""
        yield from self.moments().items()

    def own_pieces(self) -> Iterator[TensorPiece]:
        """Yield all weights and optimizer state."""
        for name, values in {**self.weights(), **self.moments()}.items():
            yield TensorPiece(name, 0, values.ravel())

    def own_weights(self) -> Iterator[TensorPiece]:
        """Yield all weights."""
        for name, values in self.weights().items():
            yield TensorPiece(name, 0, values.ravel())

    def load_own(self, pieces: Iterable[TensorPiece]) -> None:
        """Replace all weights."""
        found = {name: values.reshape(self.shapes[name]) for name, _, values in pieces}
        self.load_weights(found)

    def gather_numbers(
        self,
        own: NDArray[np.float32],
        bounds: Sequence[int],  # noqa: ARG002 - of one rank
    ) -> NDArray[np.float32]:
        """Return this rank's numbers: it holds all."""
        return own

    def load_base(self, weights: Tensors) -> None:
        """Fill the frozen model that an adapter is trained beside."""
        with torch.no_grad():
            for name in self._all:
                self._load_frozen(name, weights[name])
            for name in self._quantized.names():
                self._load_frozen(name, weights[name])

    def _load_frozen(self, name: str, values: NDArray[np.float32]) -> None:
        """Fill a frozen tensor, and the magnitude that begins with it, where there is one."""
        if name in self._all:
            self._all[name].copy_(torch.from_numpy(values))
        else:
            self._quantized.put(name, values)
        turned = skeleton(self.config).turned
        if first := first_magnitude(name, {name: values}, self._parameters, turned):
            self._parameters[first[0]].copy_(torch.from_numpy(first[1]))

    def base_digest(self) -> str:
        """Return a hash of the base's quantized matrices; empty where there are none."""
        return self._quantized.digest()

    def load_weights(self, weights: Tensors) -> None:
        """Replace the weights by others of the same names and shapes."""
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                parameter.copy_(torch.from_numpy(weights[name]))

    def exact_weights(self) -> Tensors:
        """Return the weights plus what rounding to bf16 lost of them."""
        return _arrays(self._optimizer.exact_weights())

    def load_exact(self, weights: Tensors) -> None:
        """Replace the weights, and store what rounding to bf16 loses of them."""
        self.load_weights(weights)
        self._optimizer.keep_lost({n: torch.from_numpy(values) for n, values in weights.items()})

    def moments(self) -> Tensors:
        """Return the optimizer's state; zeros before the first step."""
        found = _arrays(self._optimizer.moments())
        if self._scale.is_on:
            return {**found, LOSS_SCALE: np.array(self._scale.state(), dtype=np.float32)}
        return found

    def load_moments(self, moments: Tensors, step: int) -> None:
        """Replace the optimizer's state by that after `step` steps."""
        if LOSS_SCALE in moments:
            self._scale.load(moments[LOSS_SCALE].tolist())
        tensors = {name: torch.from_numpy(values) for name, values in moments.items()}
        self._optimizer.load(tensors, step - self._scale.left_out)

    @property
    def copies_beside(self) -> bool:
        """Say yes of a GPU: a stream of its own copies while others compute."""
        return bool(self.gpus)

    @torch.no_grad()
    def copy_state(self, weights: Tensors, moments: Tensors) -> None:
        """Copy weights and optimizer state into arrays of the machine's memory."""
        with self._copying():
            for name, place in weights.items():
                torch.from_numpy(place).copy_(self._parameters[name])
            found = self._optimizer.moments()
            for name, place in moments.items():
                if name == LOSS_SCALE:
                    place[...] = self._scale.state()
                else:
                    torch.from_numpy(place).copy_(found[name])

    @contextmanager
    def _copying(self) -> Generator[None]:
        """Let a GPU copy in a stream of its own, after all that it has been given to do so far."""
        if not self.gpus:
            yield
            return
        if self._copy_stream is None:
            self._copy_stream = torch.cuda.Stream(self.device)
        self._copy_stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._copy_stream):
            yield
        self._copy_stream.synchronize()

    def random_state(self) -> str:
        """Return the state of torch's CPU generator."""
        return bytes(torch.get_rng_state().tolist()).hex()

    def load_random_state(self, state: str) -> None:
        """Restore the state of torch's CPU generator; checkpoints of MLX have none."""
        if state:
            torch.set_rng_state(torch.frombuffer(bytearray.fromhex(state), dtype=torch.uint8))

    def begin(self, *, has_same_weights: bool) -> None:
        """Wrap the model, which sends rank 0's weights to all ranks where they may differ.

        Where one rank computes in fp16, all scale their losses alike, since gradients are summed.
        """
        self._loss = self._group.join(self._loss, has_same_weights=has_same_weights)
        if any(scales for (scales,) in self._group.gather([float(self.options.scaler)])):
            self._scale.turn_on()

    def take_micro_batch(self, sequences: int) -> None:
        """Have logits of as many tokens at a time as fit beside micro batches of so many."""
        plan = self._plan.model_copy(update={"micro_batch_sequences": sequences})
        chunk = logit_chunk_on(self.abilities, self._shape, plan, self.options)
        self._scored.chunk_tokens = chunk

    def try_pass(self, batch: MicroBatch) -> float:
        """Compute a micro batch's gradient and throw it away; return how long it took, in s.

        Without compiled kernels: each size would take longer to compile than there is time to try
        all. More launches are wasted so than later, which is in favour of larger sizes.
        """
        with torch.random.fork_rng(devices=[self.device] if self.gpus else []):
            self._reserve_moments()
            began_s = self._time_s()
            with self._keys.of(self._keys_of(batch)):
                loss = self._scored.without_graphs(*self._tensors(batch))
                (loss / batch.divisor(self.batch_sequences)).backward()
            return self._time_s() - began_s

    def end_passes(self) -> None:
        """Throw away the gradients of passes that were tried."""
        self._moments_to_come = None
        for parameter in self._parameters.values():
            parameter.grad = None

    def _reserve_moments(self) -> None:
        """On a GPU let the optimizer's state have its memory: the first step makes it."""
        if self.gpus and self._moments_to_come is None and not self._optimizer.steps:
            size = optimizer_bytes(self._shape, self._plan.options)
            self._moments_to_come = torch.empty(size, dtype=torch.uint8, device=self.device)

    def _time_s(self) -> float:
        """Return the time at which the device has done all that it was given."""
        if self.gpus:
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def step(
        self, micro_batches: Sequence[MicroBatch], learning_rate: float
    ) -> tuple[float, float]:
        """Take one optimizer step; return this rank's part of the loss, and the gradient's norm."""
        self._clock.start()
        found = self._update(self._accumulate(micro_batches), learning_rate)
        self.computed_s = self._clock.computed_s()
        return found

    def sum_gradients(self, micro_batches: Sequence[MicroBatch], *, counts: bool = True) -> float:
        """Leave the sum of all ranks' gradients in the parameters; return our part of the loss."""
        self._clock.start()
        return float(self._accumulate(micro_batches, counts=counts))

    def take_step(self, learning_rate: float) -> float:
        """Update the weights by the gradients in the parameters; return the gradients' norm."""
        return self._update(torch.zeros(()), learning_rate)[1]

    def take_gradients(self) -> Gradients:
        """Remove and return the gradients in the parameters."""
        found = {
            name: parameter.grad.detach().to("cpu", copy=True)
            for name, parameter in self._parameters.items()
            if parameter.grad is not None
        }
        self._forget_gradients()
        return found

    def put_gradients(self, gradients: Gradients) -> None:
        """Put gradients that were taken back into the parameters."""
        for name, gradient in gradients.items():
            parameter = self._parameters[name]
            if parameter.grad is None:
                parameter.grad = gradient.to(parameter.device)
            else:
                parameter.grad.copy_(gradient)

    def nats(self, micro_batches: Sequence[MicroBatch]) -> float:
        """Return the summed cross-entropy in nats, without an update and without dropout."""
        self._model.eval()
        try:
            return sum(self._scored.nats(*self._tensors(batch)) for batch in micro_batches)
        finally:
            self._model.train()

    @torch.no_grad()
    def logits(self, tokens: NDArray[np.int64], weights: Tensors | None) -> NDArray[np.float32]:
        """Return the logits [vocabulary] after a sequence, in fp32, with these weights."""
        found = {} if weights is None else weights
        given = {name: torch.from_numpy(values).to(self.device) for name, values in found.items()}
        if self.adapter is not None:
            given = {parameter_path(name): values for name, values in given.items()}
            given = frozen_as_everywhere(inner_model(self._model)) | given
        with without_flash(self._model):
            return last_logits(self._model, self._ids(tokens[None]), given).cpu().numpy()

    def gather(self, values: Sequence[float]) -> Rows:
        """All-gather the values: [ranks][values], equal on all ranks."""
        return self._group.gather(values)

    def _accumulate(self, micro_batches: Sequence[MicroBatch], *, counts: bool = True) -> Tensor:
        """Leave the batch's gradients in the parameters; return this rank's part of the loss."""
        total = torch.zeros((), device=self.device)
        for number, batch in enumerate(micro_batches, 1):
            global_tokens = batch.divisor(self.batch_sequences)
            is_last = number == len(micro_batches)
            with self._group.accumulating(is_last=is_last), self._keys.of(self._keys_of(batch)):
                loss = self._loss(*self._tensors(batch))
                factor = self.world_size / global_tokens * self._scale.factor
                with nullcontext() if counts else self._giving_zeros():
                    (loss * factor).backward()
            total += loss.detach() / global_tokens if counts else 0.0
        return total

    @contextmanager
    def _giving_zeros(self) -> Generator[None]:
        """Make a backward pass yield exact zeros: a factor of 0 would leave infinity times zero."""
        trained = [p for p in self._model.parameters() if p.requires_grad]
        hooks = [parameter.register_hook(torch.zeros_like) for parameter in trained]
        yield
        for hook in hooks:
            hook.remove()

    def _forget_gradients(self) -> None:
        """With other ranks, gradients lie where they are shared, and are kept there."""
        for parameter in self._parameters.values():
            _forget_gradient(parameter, is_shared=self.world_size > 1)

    def _tensors(self, batch: MicroBatch) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        documents = None if batch.documents is None else self._ids(batch.documents)
        counted = None if batch.counted is None else self._ids(np.flatnonzero(batch.counted))
        return self._ids(batch.inputs), self._ids(batch.targets), documents, counted

    def _keys_of(self, batch: MicroBatch) -> Tensor | None:
        keys = batch.token_keys
        return None if keys is None else as_int32(keys.reshape(-1)).to(self.device)

    def _ids(self, numbers: NDArray[np.int64]) -> Tensor:
        """Return numbers on the device; a GPU fetches them from memory that isn't moved."""
        ours = torch.from_numpy(numbers)
        return (ours.pin_memory() if self.gpus else ours).to(self.device, non_blocking=True)

    def _update(self, loss: Tensor, learning_rate: float) -> tuple[float, float]:
        """Update the weights; return the loss and the gradients' norm, read from the device once.

        Where the device itself can leave a step out, they are read after all work was handed to it.
        """
        gradients = [p.grad for p in self._parameters.values() if p.grad is not None]
        length = self._length(gradients)
        if self._leaves_out_on_device and not self._scale.is_on:
            left_out = shorten_unread(gradients, length, self._plan.clip_norm)
            with self.updating():
                self._optimizer.step(learning_rate, left_out)
            share, norm = _read(loss, length)
        else:
            share, norm = _read(loss, length)
            norm = self._update_by(norm / self._scale.factor, gradients, learning_rate)
        self._forget_gradients()
        return share, norm if math.isfinite(norm) else math.nan

    def _update_by(self, norm: float, gradients: list[Tensor], learning_rate: float) -> float:
        """Update the weights if the norm is a number; return it, 0 where fp16 left the step out."""
        if math.isfinite(norm):
            shorten(gradients, norm, self._scale.factor, self._plan.clip_norm)
            with self.updating():
                self._optimizer.step(learning_rate)
                self._scale.step_taken()
        elif self._scale.is_on and self._scale.factor > SMALLEST:
            with self.updating():
                self._scale.step_left_out()
            return 0.0
        return norm


def _read(loss: Tensor, norm: Tensor) -> tuple[float, float]:
    """Return both as numbers: where they lie on a GPU, waiting for it once."""
    if not norm.is_cuda:
        return float(loss), float(norm)
    first, second = torch.stack((loss.to(norm), norm)).tolist()
    return first, second


def _forget_gradient(parameter: nn.Parameter, *, is_shared: bool) -> None:
    if is_shared and parameter.grad is not None:
        parameter.grad.zero_()
    else:
        parameter.grad = None


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _arrays(tensors: Mapping[str, Tensor]) -> Tensors:
    return {
        name: t.detach().to("cpu", torch.float32, copy=True).contiguous().numpy()
        for name, t in tensors.items()
    }
