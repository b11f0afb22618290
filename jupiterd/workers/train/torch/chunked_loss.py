"""The cross-entropy of a batch, without ever holding all of its logits.

Owns the output layer's product, the loss, and both gradients, a few tokens at a time. Doesn't know
models. The gradients come out of the forward pass, so nothing is computed twice: what a plain loss
keeps for the backward pass (tokens x vocabulary, in fp32, twice) is never there.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

SoftmaxError = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def softmax_error(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sum of the cross-entropies, and its gradient in the place of fp32 logits.

    Nothing as large as the logits is allocated: that takes longer than all of the arithmetic.
    """
    wanted = targets[:, None]
    right = logits.gather(1, wanted)
    highest = logits.amax(dim=-1, keepdim=True)
    error = logits.sub_(highest).exp_()
    total = error.sum(dim=-1, keepdim=True)
    loss = (total.log() + highest - right).sum()
    return loss, error.div_(total).scatter_add_(1, wanted, torch.full_like(total, -1.0))


class ChunkedCrossEntropy(torch.autograd.Function):
    """The sum of the cross-entropies of all tokens, in nats."""

    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917 - torch's way to call it
        ctx: Any,  # noqa: ANN401 - torch's
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        compute: torch.dtype,
        tokens: int,
        error_of: SoftmaxError,
    ) -> Tensor:
        """hidden: [tokens, width]; weight: [vocabulary, width]; targets: int64[tokens]."""
        matrix = weight.to(compute)
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        of_hidden = torch.empty_like(hidden)
        of_weight: Tensor | None = None
        for start in range(0, len(hidden), tokens):
            chunk = slice(start, start + tokens)
            rows = hidden[chunk].to(compute)
            loss, error = error_of((rows @ matrix.t()).float(), targets[chunk])
            total += loss
            error = error.to(compute)
            of_hidden[chunk] = error @ matrix
            if ctx.needs_input_grad[1]:
                of_weight = sum_with_product(of_weight, error.t(), rows)
            del error  # or it is there beside the logits of the next ones
        learned = () if of_weight is None else (of_weight.to(weight.dtype),)
        ctx.save_for_backward(of_hidden, *learned)
        return total

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """Multiply what the forward pass found, in its place: a second matrix takes long."""
        (factor,), (of_hidden, *learned) = grad_outputs, ctx.saved_tensors
        of_weight = learned[0].mul_(factor) if learned else None  # a frozen one has none
        return of_hidden.mul_(factor), of_weight, None, None, None, None


def loss_alone(
    hidden: Tensor, weight: Tensor, targets: Tensor, compute: torch.dtype, tokens: int
) -> Tensor:
    """Return the sum of the cross-entropies of all tokens, where no gradient is wanted."""
    matrix = weight.to(compute)
    with torch.autocast(hidden.device.type, enabled=False):
        parts = zip(hidden.split(tokens), targets.split(tokens), strict=True)
        logits = (((rows.to(compute) @ matrix.t()).float(), wanted) for rows, wanted in parts)
        losses = [functional.cross_entropy(each, w, reduction="sum") for each, w in logits]
    return torch.stack(losses).sum()


def sum_with_product(total: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
    """Add a product of two matrices to fp32 sums, or begin them with it."""
    if total is None:
        return (left @ right).to(torch.promote_types(left.dtype, torch.float32))
    return total.addmm_(left, right) if left.dtype == total.dtype else total.add_(left @ right)


def cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    targets: Tensor,
    compute: torch.dtype,
    tokens: int,
    error_of: SoftmaxError = softmax_error,
) -> Tensor:
    """Return the sum of the cross-entropies of all tokens; products are computed in `compute`.

    tokens: how many have logits at a time
    """
    with torch.autocast(hidden.device.type, enabled=False):
        found = ChunkedCrossEntropy.apply(hidden, weight, targets, compute, tokens, error_of)
    assert isinstance(found, Tensor)  # noqa: S101 - torch doesn't say so
    return found
