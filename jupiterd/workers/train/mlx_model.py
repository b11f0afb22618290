"""The MLX model of a shape: mlx-lm's, and the sum of its losses.

Owns making and calling it, in the precision asked for. Doesn't know optimizers, rings or files.
"""

from collections.abc import Mapping
from typing import Any, cast

import mlx.core as mx
from mlx.nn.losses import cross_entropy
from mlx.utils import tree_flatten, tree_map, tree_unflatten
from mlx_lm.models.qwen3 import Model, ModelArgs, TransformerBlock
from transformers import PreTrainedConfig

from jupiterd.cycle.engine_options import ResolvedOptions
from jupiterd.cycle.memory import logit_chunk_tokens
from jupiterd.workers.train.model_config import config_fields

Arrays = Mapping[str, mx.array]


class CheckpointedBlock(TransformerBlock):
    """A layer that computes its insides again for the backward pass, instead of keeping them."""

    def __call__(self, x: mx.array, *others: Any) -> mx.array:
        """Return what the layer returns."""

        # A mask is no number to differentiate by, and checkpoint would try.
        def computed(parameters: Any, x: mx.array) -> mx.array:  # noqa: ANN401 - a tree of arrays
            self.update(parameters)
            return TransformerBlock.__call__(self, x, *others)

        return mx.checkpoint(computed)(self.trainable_parameters(), x)


class MlxModel:
    """A model, called with the parameters that it is to have."""

    def __init__(self, config: PreTrainedConfig, options: ResolvedOptions) -> None:
        self._model = Model(ModelArgs.from_dict(config_fields(config)))
        self._is_tied = config.tie_word_embeddings
        self._in_bf16 = options.precision == "bf16"
        if options.gradient_checkpointing:
            for layer in self._model.model.layers:
                layer.__class__ = CheckpointedBlock
        self.shapes: dict[str, tuple[int, ...]] = {
            name: value.shape for name, value in flat(self._model.parameters()).items()
        }
        """Of the parameters, by Hugging Face's names."""

    def loss(
        self,
        parameters: Any,  # noqa: ANN401 - a tree
        inputs: mx.array,
        targets: mx.array,
        documents: mx.array | None = None,
    ) -> mx.array:
        """Return the sum of the cross-entropies, in nats; parameters: a tree of fp32 arrays.

        inputs, targets, and the document of each input: int32[sequences, seq_len]
        """
        used = tree_map(_to_bf16, parameters) if self._in_bf16 else parameters
        self._model.update(used)
        layer = self._output_layer
        hidden = self._hidden(inputs, documents).reshape(-1, layer.weight.shape[1])
        wanted = targets.reshape(-1)
        tokens = logit_chunk_tokens(layer.weight.shape[0])
        if wanted.size <= tokens:
            return _loss(layer.weight, hidden, wanted)
        # The logits of all tokens would be the largest array of all: a chunk's are computed twice.
        starts = range(0, wanted.size, tokens)
        chunks = [slice(start, start + tokens) for start in starts]
        losses = [_loss_again(layer.weight, hidden[c], wanted[c]) for c in chunks]
        return mx.stack(losses).sum()

    def last_logits(self, parameters: Any, inputs: mx.array) -> mx.array:  # noqa: ANN401 - a tree
        """Return what follows a sequence, [vocabulary], in the parameters' own precision.

        inputs: int32[1, tokens]
        """
        self._model.update(parameters)
        return self._hidden(inputs, None)[0, -1] @ self._output_layer.weight.T

    @property
    def _output_layer(self) -> Any:  # noqa: ANN401 - one of two classes of MLX
        return self._model.model.embed_tokens if self._is_tied else self._model.lm_head

    def _hidden(self, inputs: mx.array, documents: mx.array | None) -> mx.array:
        """Return the last hidden states, as mlx-lm's model does, which takes no mask."""
        body = self._model.model
        if documents is None:
            return body(inputs)
        x, mask = body.embed_tokens(inputs), own_documents_mask(documents)
        for layer in body.layers:
            x = layer(x, mask, None)
        return body.norm(x)


def own_documents_mask(documents: mx.array) -> mx.array:
    """Return which tokens each may see, bool[sequences, 1, tokens, tokens]: its document's."""
    same = documents[:, None, :, None] == documents[:, None, None, :]
    positions = mx.arange(documents.shape[1])
    return same & (positions[:, None] >= positions)


def flat(tree: Any) -> dict[str, mx.array]:  # noqa: ANN401 - a tree of arrays
    """Return the arrays of a tree by their dotted names."""
    return cast("dict[str, mx.array]", dict(tree_flatten(tree)))


def tree(arrays: Arrays) -> Any:  # noqa: ANN401 - a tree of arrays
    """Return arrays by their dotted names as the tree that a model has."""
    return tree_unflatten(list(arrays.items()))


def _loss(weight: mx.array, hidden: mx.array, targets: mx.array) -> mx.array:
    logits = (hidden @ weight.T).astype(mx.float32)
    return cross_entropy(logits, targets, reduction="none").sum()


def _loss_again(weight: mx.array, hidden: mx.array, targets: mx.array) -> mx.array:
    """Return the loss, and keep nothing of it for the backward pass but what went in."""

    # Targets are no numbers to differentiate by, and checkpoint would try.
    def computed(weight: mx.array, hidden: mx.array) -> mx.array:
        return _loss(weight, hidden, targets)

    return mx.checkpoint(computed)(weight, hidden)


def _to_bf16(values: mx.array) -> mx.array:
    return values.astype(mx.bfloat16)
