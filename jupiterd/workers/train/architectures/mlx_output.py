"""The output step of a model of mlx-lm: what follows its body, whatever that is.

Owns finding where the body ends, and computing what follows from hidden states that are given:
the output layer, a scale, a cap. The model's own code does both, so a loss may take its tokens a
few at a time. Doesn't know losses.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
from mlx import nn

from jupiterd.errors import UsageError


class OutputStep:
    """Where the body of one model ends."""

    def __init__(self, model: Any, vocab_size: int) -> None:  # noqa: ANN401 - mlx-lm's
        """Find it, by a call that computes nothing.

        Raises:
            UsageError: no layer makes logits of the body's hidden states.
        """
        self._model = model
        self._hidden: mx.array | None = None
        self._seen: mx.array | None = None
        body, self.layer, self.is_plain = _found(model, vocab_size)
        body.__class__ = self._watched(type(body))

    def hidden(self, ids: mx.array) -> mx.array:
        """Return the last hidden states, [sequences, tokens, width]; ids: [sequences, tokens]."""
        self._model(ids)  # what isn't asked for is never computed: the logits aren't
        seen, self._seen = self._seen, None
        assert seen is not None  # noqa: S101 - the body is called
        return seen

    def logits(self, hidden: mx.array) -> mx.array:
        """Return what the model makes of hidden states, [tokens, vocabulary]; [tokens, width]."""
        with self._giving(hidden[None]):
            return self._model(mx.zeros((1, hidden.shape[0]), mx.int32))[0]

    @contextmanager
    def _giving(self, hidden: mx.array) -> Generator[None]:
        self._hidden = hidden
        try:
            yield
        finally:
            self._hidden = None

    def _watched(self, kind: type[nn.Module]) -> Any:  # noqa: ANN401 - a class
        step = self

        def call(self: Any, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as its own
            if step._hidden is not None:
                return step._hidden
            step._seen = kind.__call__(self, *given, **named)
            return step._seen

        return type(kind.__name__, (kind,), {"__call__": call})


class _Calls:
    """What modules returned while they are listened to, in the order in which they ended."""

    def __init__(self, model: Any) -> None:  # noqa: ANN401 - mlx-lm's
        self.ended: list[tuple[Any, Any, Any]] = []
        """Module, what it was given first, what it returned."""
        self._kinds = {id(module): (module, type(module)) for _, module in model.named_modules()}

    @contextmanager
    def listening(self) -> Generator[None]:
        """Note every call meanwhile."""
        for module, kind in self._kinds.values():
            module.__class__ = self._noting(kind)
        try:
            yield
        finally:
            for module, kind in self._kinds.values():
                module.__class__ = kind

    def _noting(self, kind: type[nn.Module]) -> Any:  # noqa: ANN401 - a class
        calls = self

        def noted(name: str) -> Any:  # noqa: ANN401 - a method
            own = getattr(kind, name)

            def call(self: Any, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as its own
                returned = own(self, *given, **named)
                calls.ended.append((self, given[0] if given else None, returned))
                return returned

            return call

        methods = [name for name in ("__call__", "as_linear") if hasattr(kind, name)]
        return type(kind.__name__, (kind,), {name: noted(name) for name in methods})


def _found(model: Any, vocab_size: int) -> tuple[Any, Any, bool]:  # noqa: ANN401 - modules
    """Return the module whose end is the body's, the output layer, and whether it is plain.

    Plain: logits are hidden states times its matrix, and no more.
    """
    calls = _Calls(model)
    with calls.listening():
        logits = model(mx.zeros((1, 2), mx.int32))
    outputs = [
        n
        for n, (module, _, output) in enumerate(calls.ended)
        if isinstance(module, nn.Linear | nn.Embedding)
        and isinstance(output, mx.array)
        and output.shape[-1] == vocab_size
    ]
    before = calls.ended[: outputs[-1]] if outputs else []
    if not before:
        raise UsageError("MLX's model has no output layer", "train it on torch: --engine torch")
    last = before[-1][2]
    body = next(module for module, _, output in reversed(before) if output is last)
    layer, given, output = calls.ended[outputs[-1]]
    is_product = type(layer) in _PRODUCTS and "bias" not in layer
    return body, layer, is_product and given is last and output is logits


_PRODUCTS = {nn.Linear, nn.Embedding}
