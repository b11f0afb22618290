"""Where mlx-lm's module computes about what a configuration says: here it computes just that.

Owns these replacements, each of a few lines. GPT-NeoX's feed-forward part is written with an
approximated GELU, and its configurations say which one they mean: Pythia's is the exact one.
Gemma 3 multiplies embeddings by a factor that is rounded to bf16, in fp32, too.
"""

from collections.abc import Mapping
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.models import gpt_neox

_ACTIVATIONS = {"gelu": nn.gelu, "relu": nn.relu, "silu": nn.silu}
"""The others of the family are what mlx-lm computes."""


def correct(module: Any, fields: Mapping[str, Any]) -> None:  # noqa: ANN401 - mlx-lm's
    """Let a module compute what its configuration says."""
    kind = fields.get("model_type")
    if kind == "gpt_neox":
        _use_activation(module, _ACTIVATIONS.get(str(fields.get("hidden_act"))))
    if kind == "gemma3_text":
        exact = float(fields["hidden_size"]) ** 0.5
        _scale_embeddings(module.model, exact / mx.array(exact, mx.bfloat16).item())


class _GptNeoxMlp(gpt_neox.MLP):
    """The feed-forward part, with the configuration's activation."""

    activation: Any = None

    def __call__(self, x: mx.array) -> mx.array:
        """Return what the layer adds."""
        return self.dense_4h_to_h(type(self).activation(self.dense_h_to_4h(x)))


class _ScaledEmbedding(nn.Embedding):
    """An embedding whose vectors are multiplied by what rounding took of their factor."""

    factor: float = 1.0

    def __call__(self, x: mx.array) -> mx.array:
        """Return the vectors of tokens."""
        found = nn.Embedding.__call__(self, x)
        return found * mx.array(type(self).factor, found.dtype)


def _use_activation(module: Any, wanted: Any) -> None:  # noqa: ANN401 - a module, a function
    if wanted is None:
        return
    kind = type("GptNeoxMlp", (_GptNeoxMlp,), {"activation": staticmethod(wanted)})
    for layer in module.layers:
        layer.mlp.__class__ = kind


def _scale_embeddings(body: Any, factor: float) -> None:  # noqa: ANN401 - a module
    body.embed_tokens.__class__ = type("ScaledEmbedding", (_ScaledEmbedding,), {"factor": factor})
