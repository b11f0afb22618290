"""The MLX model of a shape: mlx-lm's, and the sum of its losses.

Owns calling it, in the precision asked for, with parameters that have transformers' names. Doesn't
know optimizers, rings or files.
"""

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

import mlx.core as mx
from mlx.nn.losses import cross_entropy
from mlx.utils import tree_flatten, tree_map
from transformers import PreTrainedConfig

from jupiterd.cycle.training.adapters.adapter import MAGNITUDE, AdapterOptions
from jupiterd.cycle.training.engine_options import ResolvedOptions
from jupiterd.cycle.training.memory import logit_chunk_tokens
from jupiterd.workers.packed_tensors import packed_of
from jupiterd.workers.train.architectures.mlx_layers import LayerCalls, own_documents_mask
from jupiterd.workers.train.architectures.mlx_module import MlxModule
from jupiterd.workers.train.architectures.mlx_output import OutputStep
from jupiterd.workers.train.first_magnitudes import first_magnitude
from jupiterd.workers.train.mlx.mlx_adapter import MlxAdapter
from jupiterd.workers.train.mlx.mlx_loss import summed_loss
from jupiterd.workers.train.mlx.mlx_quantized import QuantizedMatrices
from jupiterd.workers.training_engine import Tensors

Arrays = Mapping[str, mx.array]


class MlxModel:
    """A model, called with the parameters that it is to have."""

    def __init__(
        self,
        config: PreTrainedConfig,
        options: ResolvedOptions,
        adapter: AdapterOptions | None = None,
    ) -> None:
        """Make it; adapter: what is trained beside the model's own weights, which are frozen.

        Raises:
            UsageError: mlx-lm has no such model, or documents can't be kept apart in it.
        """
        self.module = self._module = MlxModule(config)
        """mlx-lm's, for whoever calls its layers one by one."""
        inner = self._module.inner
        self._vocab_size = config.vocab_size
        self._output = OutputStep(inner, config.vocab_size)
        self._calls = LayerCalls(inner.layers, computes_twice=options.gradient_checkpointing)
        if options.documents_apart:
            self._calls.check_masks()
        self._in_bf16 = options.precision == "bf16"
        self._adapter = None if adapter is None else MlxAdapter(config, adapter)
        trained = self._module if self._adapter is None else self._adapter
        self.shapes: Mapping[str, tuple[int, ...]] = trained.shapes
        """Of the parameters that it is called with, by transformers' names, or peft's."""
        self.base_digest = ""
        """A hash of the matrices that are quantized; empty where none is."""
        self.frozen = self._module.frozen if self._adapter is None else frozenset[str]()
        """Parameters among them that aren't trained."""

    def loss(
        self,
        parameters: Arrays,
        inputs: mx.array,
        targets: mx.array,
        documents: mx.array | None = None,
        counted: mx.array | None = None,
        *,
        learns: bool = False,
    ) -> mx.array:
        """Return the sum of the cross-entropies, in nats; parameters: fp32.

        inputs, targets, and the document of each input: int32[sequences, seq_len]; counted: the
        places of the targets that count, of all sequences one after the other; None: all do;
        learns: its gradient will be asked for
        """
        self._take(parameters, in_bf16=self._in_bf16)
        with self.documents_apart(documents):
            return self.loss_after(self.hidden(inputs), targets, counted, learns=learns)

    def loss_after(
        self,
        hidden: mx.array,
        targets: mx.array,
        counted: mx.array | None = None,
        *,
        learns: bool = False,
    ) -> mx.array:
        """Return the sum of the cross-entropies after the last hidden states, in nats.

        hidden: [sequences, tokens, width]; the others as `loss` has them
        """
        hidden, wanted = hidden.reshape(-1, hidden.shape[-1]), targets.reshape(-1)
        if counted is not None and not counted.size:
            return self._loss(hidden[:1], wanted[:1]) * 0.0
        if counted is not None:
            hidden, wanted = hidden[counted], wanted[counted]
        tokens = logit_chunk_tokens(self._vocab_size)
        if learns and self._output.is_plain:
            matrix, is_frozen = self._output.layer.weight, self._adapter is not None
            return summed_loss(hidden, matrix, wanted, tokens, is_frozen=is_frozen)
        if wanted.size <= tokens:
            return self._loss(hidden, wanted)
        # The logits of all tokens would be the largest array of all: a chunk's are computed twice.
        starts = range(0, wanted.size, tokens)
        chunks = [slice(start, start + tokens) for start in starts]
        last = self._output.layer.trainable_parameters()
        losses = [self._loss_again(last, hidden[c], wanted[c]) for c in chunks]
        return mx.stack(losses).sum()

    def leaving_out(self, keys: mx.array | None) -> AbstractContextManager[None]:
        """Have an adapter's dropout follow from the keys of tokens; None: it leaves out nothing."""
        return nullcontext() if self._adapter is None else self._adapter.keys.of(keys)

    def let_go(self) -> None:
        """Hold no parameters any more: those of a step would stay there beside the next one's."""
        (self._module if self._adapter is None else self._adapter).let_go()

    def load_base(self, weights: Tensors) -> dict[str, mx.array]:
        """Fill the frozen model, and put the adapter into it; return its first magnitudes."""
        assert self._adapter is not None  # noqa: S101 - else nothing is frozen
        are_given = any(packed_of(weights, name) is not None for name in weights)
        quantized = QuantizedMatrices(
            self._module, self._adapter.bits, in_bf16=self._in_bf16, are_given=are_given
        )
        used: dict[str, mx.array] = {}
        magnitudes: dict[str, mx.array] = {}
        for name in weights:
            if first := first_magnitude(name, weights, self.shapes, self._module.turned):
                magnitudes[first[0]] = mx.array(first[1])
            packed = packed_of(weights, name) if quantized.has_place(name) else None
            if packed is not None:
                used[name] = quantized.put_packed(name, packed)
            elif quantized.takes(name):
                used[name] = quantized.put(name, weights[name])
            else:
                values = mx.array(weights[name])
                used[name] = _to_bf16(values) if self._in_bf16 else values
                mx.eval(used[name])  # or all are there in fp32 at a time
        self.base_digest = quantized.digest()
        self._module.update_beside(used, quantized.places)
        mx.eval(self._module.inner.parameters())
        self._adapter.put_into(self._module)
        return magnitudes

    def _take(self, parameters: Arrays, *, in_bf16: bool) -> None:
        # With an adapter in fp32 each of its inputs would be there in fp32 once more. Magnitudes
        # change by less than bf16 has digits for.
        used = {n: p if _is_magnitude(n) else _to_bf16(p) for n, p in parameters.items()}
        used = used if in_bf16 else parameters
        (self._module if self._adapter is None else self._adapter).update(used)

    def last_logits(self, parameters: Arrays, inputs: mx.array) -> mx.array:
        """Return what follows a sequence, [vocabulary], in the parameters' own precision.

        inputs: int32[1, tokens]
        """
        with self._frozen_as_everywhere():
            self._take(parameters, in_bf16=False)
            return self.logits_after(self.hidden(inputs))

    def logits_after(self, hidden: mx.array) -> mx.array:
        """Return the logits after one sequence's last hidden state: [vocabulary]."""
        return self._output.logits(hidden[0, -1:])[0]

    @contextmanager
    def _frozen_as_everywhere(self) -> Generator[None]:
        """Have frozen parameters in fp32, rounded as a device has them that multiplies in bf16.

        So logits can be compared that unlike devices have computed.
        """
        if self._adapter is None:
            yield
            return
        inner = self._module.inner
        kept = inner.parameters()
        inner.update(tree_map(_rounded, kept))
        try:
            yield
        finally:
            inner.update(kept)

    def hidden(self, inputs: mx.array) -> mx.array:
        """Return the last hidden states, [sequences, tokens, width]; inputs: as `loss` has them."""
        return self._output.hidden(inputs)

    @contextmanager
    def documents_apart(self, documents: mx.array | None) -> Generator[None]:
        """Let a document see none but itself, where they are told."""
        self._calls.own_documents = None if documents is None else own_documents_mask(documents)
        try:
            yield
        finally:
            self._calls.own_documents = None

    def in_precision(self, parameters: Arrays) -> Arrays:
        """Return parameters in what the model multiplies in; parameters: fp32."""
        return {n: _to_bf16(p) for n, p in parameters.items()} if self._in_bf16 else parameters

    def _loss(self, hidden: mx.array, targets: mx.array) -> mx.array:
        logits = self._output.logits(hidden).astype(mx.float32)
        return cross_entropy(logits, targets, reduction="none").sum()

    def _loss_again(self, last: Any, hidden: mx.array, targets: mx.array) -> mx.array:  # noqa: ANN401
        """Return the loss, and keep nothing of it for the backward pass but what went in.

        last: the output layer's parameters
        """

        # Targets are no numbers to differentiate by, and checkpoint would try.
        def computed(last: Any, hidden: mx.array) -> mx.array:  # noqa: ANN401 - a tree of arrays
            self._output.layer.update(last)
            return self._loss(hidden, targets)

        return mx.checkpoint(computed)(last, hidden)


def flat(tree: Any) -> dict[str, mx.array]:  # noqa: ANN401 - a tree of arrays
    """Return the arrays of a tree by their dotted names."""
    return cast("dict[str, mx.array]", dict(tree_flatten(tree)))


def _rounded(values: mx.array) -> mx.array:
    if not mx.issubdtype(values.dtype, mx.floating):  # a quantized matrix's bits
        return values
    return _to_bf16(values).astype(mx.float32)


def _is_magnitude(name: str) -> bool:
    return name.endswith(MAGNITUDE)


def _to_bf16(values: mx.array) -> mx.array:
    return values.astype(mx.bfloat16)
