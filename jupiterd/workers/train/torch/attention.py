"""Attention to the tokens before, in torch: its own kernels, or the package flash-attn.

Owns the kernels, and how documents are kept apart in each. Doesn't know models.
"""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional


class Attention(Protocol):
    """A kernel, and what it needs to be told of documents."""

    def bounds(self, documents: Tensor) -> Tensor:
        """Return where documents end, in the kernel's form; documents: [sequences, tokens]."""
        ...

    def __call__(
        self, queries: Tensor, keys: Tensor, values: Tensor, bounds: Tensor | None
    ) -> Tensor:
        """Return as queries, [sequences, tokens, heads, width]; keys and values have own heads.

        Without bounds a sequence is one document.
        """
        ...


class TorchAttention:
    """torch's own kernels."""

    def bounds(self, documents: Tensor) -> Tensor:
        """Return which tokens each may see, bool[sequences, 1, tokens, tokens]."""
        return own_documents_mask(documents)

    def __call__(
        self, queries: Tensor, keys: Tensor, values: Tensor, bounds: Tensor | None
    ) -> Tensor:
        """Attend to the tokens before; see `Attention`."""
        shares = queries.shape[2] != keys.shape[2]
        queries, keys, values = (tensor.transpose(1, 2) for tensor in (queries, keys, values))
        attend = functional.scaled_dot_product_attention
        found = attend(
            queries, keys, values, attn_mask=bounds, is_causal=bounds is None, enable_gqa=shares
        )
        return found.transpose(1, 2)


class FlashAttention:
    """The package flash-attn."""

    def bounds(self, documents: Tensor) -> Tensor:
        """Return where each document begins in the row of all sequences, and where the last ends.

        int32[documents + 1]; a sequence begins another document, whatever the one before was of.
        """
        begins = torch.ones_like(documents, dtype=torch.bool)
        begins[:, 1:] = documents[:, 1:] != documents[:, :-1]
        starts = begins.flatten().nonzero().flatten()
        end = torch.tensor([documents.numel()], device=documents.device)
        return torch.cat((starts, end)).to(torch.int32)

    def __call__(
        self, queries: Tensor, keys: Tensor, values: Tensor, bounds: Tensor | None
    ) -> Tensor:
        """Attend to the tokens before; see `Attention`."""
        from flash_attn import (  # pyright: ignore[reportMissingImports]
            flash_attn_func,
            flash_attn_varlen_func,
        )

        if bounds is None:
            return flash_attn_func(queries, keys, values, causal=True)
        longest = queries.shape[1]  # no document is longer than a sequence
        rows = (tensor.flatten(0, 1) for tensor in (queries, keys, values))
        found = flash_attn_varlen_func(*rows, bounds, bounds, longest, longest, causal=True)
        return found.view(queries.shape)


def own_documents_mask(documents: Tensor) -> Tensor:
    """Return which tokens each may see, bool[sequences, 1, tokens, tokens]: its document's."""
    return (documents[:, None, :, None] == documents[:, None, None, :]).tril()
