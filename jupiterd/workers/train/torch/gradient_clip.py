"""How long a step's gradients are together, and shortening them where that is too long.

Owns that arithmetic, on the device where the gradients lie. Doesn't know models, optimizers or
ranks.
"""

import torch
from torch import Tensor

CLIP_EPSILON = 1e-6
"""What torch adds to a gradient's norm before it divides by it."""


def length_of(gradients: list[Tensor]) -> Tensor:
    """Return the L2 norm of all gradients together, float64[].

    Measured row by row, and the rows in float64: torch adds up half a million squares in one go
    with an error of a ten-thousandth, and then every step is clipped a little differently than
    on MLX. It lies where the gradients do, or on the CPU where the device has no float64.
    """
    rows = [torch.linalg.vector_norm(g, dim=-1, dtype=torch.float32).flatten() for g in gradients]
    together = torch.cat(rows)
    place = together.device if together.is_cuda else "cpu"
    return torch.linalg.vector_norm(together.to(place, torch.float64))


def shorten(gradients: list[Tensor], norm: float, scale: float, most: float) -> None:
    """Take the loss's factor `scale` out of gradients, and make them no longer than `most`."""
    limit = min(1.0, most / (norm + CLIP_EPSILON))
    if (factor := limit / scale) != 1.0:
        torch._foreach_mul_(gradients, factor)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]


def shorten_unread(gradients: list[Tensor], norm: Tensor, most: float) -> Tensor:
    """Do the same where nobody has read the norm yet; return 1.0[] where it is no number, else 0.

    The host goes on meanwhile.
    """
    factor = (most / (norm + CLIP_EPSILON)).clamp(max=1.0)
    torch._foreach_mul_(gradients, factor)  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
    return torch.logical_not(torch.isfinite(norm)).to(torch.float32)
