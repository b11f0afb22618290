"""A Qwen3 model in torch, with nothing in it but what training needs.

Owns the forward pass up to the last hidden states. Computes what transformers' Qwen3ForCausalLM
does and calls its parameters the same, with one kernel for each norm, no padding and no caches.
Doesn't know losses, optimizers or files.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config

from jupiterd.workers.train.torch.attention import Attention


class Norm(nn.Module):
    """Divides by the root mean square, and multiplies by what was learned."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self._epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows with a root mean square of about one."""
        return functional.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), self._epsilon)


class SelfAttention(nn.Module):
    """Attention with heads that share keys and values."""

    def __init__(self, config: Qwen3Config, attention: Attention) -> None:
        super().__init__()
        self.attend, self._width = attention, width_of(config)
        queries = config.num_attention_heads * self._width
        keys = (config.num_key_value_heads or config.num_attention_heads) * self._width
        self.q_proj = nn.Linear(config.hidden_size, queries, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, keys, bias=False)
        self.o_proj = nn.Linear(queries, config.hidden_size, bias=False)
        self.q_norm = Norm(self._width, config.rms_norm_eps)
        self.k_norm = Norm(self._width, config.rms_norm_eps)

    def forward(
        self, x: Tensor, cosines: Tensor, sines: Tensor, bounds: Tensor | None = None
    ) -> Tensor:
        """x: [sequences, tokens, hidden]; cosines and sines: [tokens, 1, width / 2]."""
        heads = (*x.shape[:2], -1, self._width)
        queries = rotated(self.q_norm(self.q_proj(x).view(heads)), cosines, sines)
        keys = rotated(self.k_norm(self.k_proj(x).view(heads)), cosines, sines)
        found = self.attend(queries, keys, self.v_proj(x).view(heads), bounds)
        return self.o_proj(found.reshape(*x.shape[:2], -1))


class FeedForward(nn.Module):
    """The gated part of a layer."""

    def __init__(self, config: Qwen3Config) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x: [sequences, tokens, hidden]."""
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    """One of the model's layers."""

    def __init__(self, config: Qwen3Config, attention: Attention) -> None:
        super().__init__()
        self.self_attn = SelfAttention(config, attention)
        self.mlp = FeedForward(config)
        self.input_layernorm = Norm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = Norm(config.hidden_size, config.rms_norm_eps)

    def forward(
        self, x: Tensor, cosines: Tensor, sines: Tensor, bounds: Tensor | None = None
    ) -> Tensor:
        """x: [sequences, tokens, hidden]; what a layer finds is added to it."""
        x = x + self.self_attn(self.input_layernorm(x), cosines, sines, bounds)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    """Everything but the output layer."""

    def __init__(self, config: Qwen3Config, attention: Attention) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        count = config.num_hidden_layers
        self.layers = nn.ModuleList(DecoderLayer(config, attention) for _ in range(count))
        self.norm = Norm(config.hidden_size, config.rms_norm_eps)


class Qwen3(nn.Module):
    """The model; its parameters have Hugging Face's names, and no values yet."""

    def __init__(
        self,
        config: Qwen3Config,
        attention: Attention,
        *,
        gradient_checkpointing: bool = False,
        has_memory: bool = True,
    ) -> None:
        """has_memory: False: the parameters stay on torch's device "meta", to be replaced."""
        super().__init__()
        self.config = config
        self._attention = attention
        self._checkpointing = gradient_checkpointing
        with torch.device("meta"):
            self.model = Body(config, attention)
            self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if has_memory:
            self.to_empty(device="cpu")
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
        cosines, sines = rotations(config)
        self.cosines: Tensor
        self.sines: Tensor
        self.register_buffer("cosines", cosines, persistent=False)
        self.register_buffer("sines", sines, persistent=False)

    @contextmanager
    def attending(self, attention: Attention) -> Generator[None]:
        """Compute attention with another kernel meanwhile."""
        before = self._attention
        self._attend_by(attention)
        try:
            yield
        finally:
            self._attend_by(before)

    def _attend_by(self, attention: Attention) -> None:
        self._attention = attention
        for module in self.modules():
            if isinstance(module, SelfAttention):
                module.attend = attention

    def bounds(self, documents: Tensor) -> Tensor:
        """Return what `hidden` takes, to keep documents apart; documents: [sequences, tokens]."""
        return self._attention.bounds(documents)

    def hidden(self, ids: Tensor, bounds: Tensor | None = None) -> Tensor:
        """Return the last hidden states, [sequences, tokens, hidden]."""
        x = self.model.embed_tokens(ids)
        turns = [turn[: ids.shape[1]] for turn in (self.cosines, self.sines)]
        for layer in self.model.layers:
            x = (
                checkpoint(layer, x, *turns, bounds, use_reentrant=False)
                if self._checkpointing
                else layer(x, *turns, bounds)
            )
        return self.model.norm(x)

    @property
    def output_weight(self) -> Tensor:
        """Return the output layer's matrix, [vocabulary, hidden]."""
        return self.lm_head.weight

    @property
    def is_plain(self) -> bool:
        """Say that logits are hidden states times that matrix, and no more."""
        return True

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of hidden states, [tokens, vocabulary]."""
        return self.lm_head(hidden)


def can_train(config: Qwen3Config) -> bool:
    """Say whether this configuration asks for nothing that this model doesn't have."""
    return (
        not config.attention_bias
        and not config.use_sliding_window
        and config.hidden_act == "silu"
        and dict(config.rope_parameters or {}).get("rope_type") == "default"
    )


def width_of(config: Qwen3Config) -> int:
    """Return the width of one head."""
    return config.head_dim or config.hidden_size // config.num_attention_heads


def rotations(config: Qwen3Config) -> tuple[Tensor, Tensor]:
    """Return cosine and sine of each position's angles, [tokens, 1, width / 2]."""
    rope: Mapping[str, Any] = dict(config.rope_parameters or {})
    theta = float(rope["rope_theta"])
    width, tokens = width_of(config), config.max_position_embeddings
    frequencies = 1.0 / theta ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = torch.outer(torch.arange(tokens, dtype=torch.float32), frequencies)[:, None, :]
    return angles.cos(), angles.sin()


def rotated(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn the two halves of each head by the position's angles."""
    first, second = x.chunk(2, dim=-1)
    cosines, sines = cosines.to(x.dtype), sines.to(x.dtype)
    turned = (first * cosines - second * sines, second * cosines + first * sines)
    return torch.cat(turned, dim=-1)
