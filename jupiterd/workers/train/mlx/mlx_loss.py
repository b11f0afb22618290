"""The cross-entropy of a batch on MLX, without ever holding all of its logits.

Owns the output layer's product, the loss, and both gradients, a few tokens at a time, as
`chunked_loss` does on torch. Doesn't know models. The gradients come with the loss, so nothing is
computed twice. MLX computes what is asked for in an order of its own: each piece is told to wait
for the one before, or the logits of all would be there at once.
"""

from typing import Any

import mlx.core as mx


def summed_loss(
    hidden: mx.array,
    weight: mx.array,
    targets: mx.array,
    at_a_time: int,
    *,
    is_frozen: bool = False,
) -> mx.array:
    """Return the sum of the cross-entropies, in nats; only its gradient can be asked for.

    hidden: [tokens, width]; weight: [vocabulary, width], which has no gradient where it is frozen;
    targets: int32[tokens]
    """

    def found(hidden: mx.array, weight: mx.array) -> list[mx.array]:
        return _found(hidden, weight, targets, at_a_time, is_frozen=is_frozen)

    def backward(_primals: Any, cotangents: Any, outputs: Any) -> tuple[mx.array, mx.array]:  # noqa: ANN401 - arrays
        factor, of_hidden = cotangents[0], outputs[1]
        of_weight = mx.zeros_like(weight) if is_frozen else outputs[2] * factor
        return (of_hidden * factor).astype(hidden.dtype), of_weight.astype(weight.dtype)

    with_gradients: Any = mx.custom_function(found)
    with_gradients.vjp(backward)
    return with_gradients(hidden, weight)[0]


def _found(
    hidden: mx.array, weight: mx.array, targets: mx.array, at_a_time: int, *, is_frozen: bool
) -> list[mx.array]:
    """Return the loss, and its gradients by the hidden states and by the matrix, in fp32."""
    losses: list[mx.array] = []
    of_hidden: list[mx.array] = []
    of_weight: mx.array | None = None
    for start in range(0, targets.size, at_a_time):
        rows, wanted = hidden[start : start + at_a_time], targets[start : start + at_a_time]
        if losses:
            before = [losses[-1], of_hidden[-1], *([] if of_weight is None else [of_weight])]
            rows = mx.depends([rows], before)[0]
        loss, shares = _softmax((rows @ weight.T).astype(mx.float32), wanted)
        losses.append(loss)
        shares = shares.astype(weight.dtype)
        # The right token's error is its share less one: its row is taken off instead.
        of_hidden.append((shares @ weight).astype(mx.float32) - weight[wanted])
        if not is_frozen:
            of_weight = _sum_with_product(of_weight, shares.T, rows).at[wanted].subtract(rows)
    learned = [] if of_weight is None else [of_weight]
    return [mx.stack(losses).sum(), mx.concatenate(of_hidden), *learned]


def _softmax(logits: mx.array, wanted: mx.array) -> tuple[mx.array, mx.array]:
    """Return the sum of the cross-entropies, and each token's share of what is expected."""
    total = mx.logsumexp(logits, axis=-1, keepdims=True)
    right = mx.take_along_axis(logits, wanted[:, None], axis=-1)
    return (total - right).sum(), mx.exp(logits - total)


def _sum_with_product(total: mx.array | None, left: mx.array, right: mx.array) -> mx.array:
    """Add a product of two matrices to fp32 sums, or begin them with it."""
    if total is None:
        return (left @ right).astype(mx.float32)
    if left.dtype == mx.float32:
        return mx.addmm(total, left, right)
    return total + left @ right
