"""Whether islands train the same model: what each says of one batch that is the same everywhere.

Owns how far logits may lie apart, and who is taken for the one that is wrong. Pure. Doesn't know
how logits are computed, or what becomes of whoever differs.

On CPUs, MLX and torch in fp32 lie 4e-7 apart with a million first weights, and 4e-6 (6e-7 of the
largest logit) after some training; another base of the positions' angles, another epsilon of the
norms or two weights in each other's place 3e-4 to 0.3.
"""

import math
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

TOLERANCE: Final = 1e-4
OF_LARGEST: Final = 1e-5
"""What may lie apart where the largest logit is more than ten: rounding grows with the numbers."""

Logits = Sequence[float]


@dataclass(frozen=True)
class ModelMismatch:
    """How far logits are off."""

    most: float
    """Of all logits; infinite where one is no number."""
    allowed: float

    @property
    def is_allowed(self) -> bool:
        """Say whether that is what rounding does."""
        return self.most <= self.allowed


def strangers(
    fingerprints: Mapping[str, bytes], known: Collection[str]
) -> dict[str, ModelMismatch]:
    """Return whose logits aren't those of the others, and how far they are off.

    Those that are known are believed; where nobody is, those that most agree on.

    Args:
        fingerprints: each island's logits, float32 in little endian; empty where it told none.
        known: islands that have shown before that they train the same model.
    """
    logits = {
        name: array("f", each[: len(each) // 4 * 4]) for name, each in fingerprints.items() if each
    }
    groups: list[list[str]] = []
    for name in sorted(logits, key=lambda name: (name not in known, name)):
        fitting = (g for g in groups if _apart(logits[g[0]], logits[name]).is_allowed)
        group = next(fitting, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    if len(groups) < 2:
        return {}
    right = max(groups, key=lambda group: (len({*group} & {*known}), len(group)))
    others = logits.keys() - {*right, *known}
    return {name: _apart(logits[right[0]], logits[name]) for name in sorted(others)}


def _apart(right: Logits, other: Logits) -> ModelMismatch:
    allowed = max(TOLERANCE, OF_LARGEST * max(map(abs, right), default=0.0))
    if len(right) != len(other):
        return ModelMismatch(math.inf, allowed)
    apart = [abs(one - two) for one, two in zip(right, other, strict=True)]
    has_numbers = all(map(math.isfinite, apart))
    return ModelMismatch(max(apart, default=0.0) if has_numbers else math.inf, allowed)
