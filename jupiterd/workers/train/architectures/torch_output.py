"""The output step of a model of transformers: what follows its body, whatever that is.

Owns computing it of hidden states that are given: the output layer, a scale, a cap. The model's own
code does it, so a loss may take its tokens a few at a time. Whether it is a product and no more is
found out by trying. Doesn't know losses.
"""

import copy
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn

_TRIED_TOKENS = 3
_LARGE = 50.0
"""Hidden states as large as this show a cap."""
_TOLERANCE = 1e-4


class TorchOutputStep:
    """Where the body of one model ends."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401 - transformers'
        self._model = model
        self._is_split: bool | None = None
        self._is_plain: bool | None = None

    @property
    def is_plain(self) -> bool:
        """Say whether logits are hidden states times the output layer's matrix, and no more."""
        if self._is_plain is None:
            self._is_plain = self._can_be_split() and self._is_a_product()
        return self._is_plain

    def hidden(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return the last hidden states; the logits of a model whose output step isn't one.

        ids: [sequences, tokens]
        """
        forward = {"input_ids": ids, "attention_mask": mask, "use_cache": False}
        if self._can_be_split():
            return self._model.base_model(**forward).last_hidden_state
        return self._model(**forward).logits

    def logits(self, hidden: Tensor) -> Tensor:
        """Return what the model makes of hidden states: [tokens, width] to [tokens, vocabulary]."""
        if not self._can_be_split():
            return hidden
        return self._head(input_ids=hidden[None], use_cache=False).logits[0]

    @cached_property
    def _head(self) -> Any:  # noqa: ANN401 - transformers'
        """Return the model with a body that returns what it is given, and computes nothing."""
        head = copy.copy(self._model)
        head._modules = dict(head._modules)  # noqa: SLF001 - the parts themselves stay shared
        setattr(head, head.base_model_prefix, _GivenBody())
        return head

    @torch.no_grad()
    def _can_be_split(self) -> bool:
        """Say whether body and output step, one after the other, are the whole model."""
        if self._is_split is None:
            self._is_split = False
            if self._model.base_model is not self._model:
                self._is_split = self._is_whole_when_split()
        return self._is_split

    def _is_whole_when_split(self) -> bool:
        device = self._weight.device
        ids = torch.arange(_TRIED_TOKENS, device=device)[None]
        was_training = self._model.training
        self._model.eval()
        try:
            with _random_state_restored():
                forward = {"input_ids": ids, "use_cache": False}
                whole = self._model(**forward).logits
                self._is_split = True
                hidden = self._model.base_model(**forward).last_hidden_state
                return torch.allclose(self.logits(hidden[0]), whole[0], rtol=_TOLERANCE, atol=1e-5)
        except (AttributeError, TypeError, RuntimeError, KeyError, IndexError, ValueError):
            return False  # its output step wants more of the body than hidden states
        finally:
            self._model.train(was_training)

    @torch.no_grad()
    def _is_a_product(self) -> bool:
        weight = self._weight
        if getattr(self._model.get_output_embeddings(), "bias", None) is not None:
            return False
        width = weight.shape[1]
        hidden = torch.linspace(-_LARGE, _LARGE, _TRIED_TOKENS * width, device=weight.device)
        rows = hidden.view(width, _TRIED_TOKENS).t().contiguous().to(weight.dtype)
        product = rows @ weight.t()
        return torch.allclose(self.logits(rows), product, rtol=_TOLERANCE, atol=1e-3)

    @property
    def _weight(self) -> Tensor:
        return cast("nn.Linear", self._model.get_output_embeddings()).weight


class _GivenBody(nn.Module):
    """Stands where a body was; what it is given as token ids are hidden states."""

    def forward(self, *given: Tensor, **named: Any) -> Any:  # noqa: ANN401 - as the body's own
        return _BodyOutput(last_hidden_state=given[0] if given else named["input_ids"])


class _BodyOutput(dict[str, Any]):
    """What a body returns, by name or by place; what else it might have is None."""

    def __init__(self, last_hidden_state: Tensor) -> None:
        super().__init__(last_hidden_state=last_hidden_state)
        self.last_hidden_state = last_hidden_state

    def __getattr__(self, name: str) -> None:
        """Return None: no caches, no attention."""

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - as transformers' outputs
        return self.last_hidden_state if key == 0 else super().__getitem__(key)


@contextmanager
def _random_state_restored() -> Generator[None]:
    with torch.random.fork_rng(devices=[]):
        yield
