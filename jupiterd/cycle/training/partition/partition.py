"""What of a model each rank of a gang holds, where no rank holds all of it.

Owns the three stages (Rajbhandari et al. 2020, "ZeRO", arXiv 1910.02054), and each part. Pure.
Doesn't know tensors (`partition_layout`), nor memory (`partition_memory`).

| stage | cut over the ranks |
|---|---|
| 1 | what the optimizer keeps |
| 2 | gradients, too |
| 3 | weights, too: those of a layer are gathered while it computes |

Beside an adapter the frozen weights are cut, which is stage 3, and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from jupiterd.errors import Bug

PARAM: Final = "partition"
"""What the order to a rank calls it."""
BASE_PARAM: Final = "base_partition"
"""The same, where what is cut is the frozen model beside an adapter."""

STAGES: Final = (1, 2, 3)
GRADIENTS: Final = 2
WEIGHTS: Final = 3


@dataclass(frozen=True)
class Partition:
    """How much each rank holds; the same on all of them."""

    stage: int
    parts: tuple[int, ...]
    """By rank: how much of everything it holds, compared with the others; not all are 0."""

    def __post_init__(self) -> None:
        """Refuse what nobody can hold."""
        if self.stage not in STAGES or min(self.parts) < 0 or not sum(self.parts):
            raise Bug(f"no such partition: stage {self.stage}, parts {self.parts}")

    @property
    def cuts_gradients(self) -> bool:
        """Say whether each rank keeps its part of the gradients alone."""
        return self.stage >= GRADIENTS

    @property
    def cuts_weights(self) -> bool:
        """Say whether each rank keeps its part of the weights alone."""
        return self.stage >= WEIGHTS

    def share(self, rank: int) -> float:
        """Return the rank's part of the whole, from 0 to 1."""
        return self.parts[rank] / sum(self.parts)

    def to_plain(self) -> dict[str, Any]:
        """Return it as an order to a rank has it."""
        return {"stage": self.stage, "parts": list(self.parts)}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Read it from an order."""
        return cls(int(plain["stage"]), tuple(map(int, plain["parts"])))


def sent_numbers(
    parameters: int, partition: Partition | None, ranks: int, passes: int, outside: int = 0
) -> int:
    """Return how many numbers the busiest rank sends in a step.

    Gradients go to who holds their part after each pass of a micro batch, or once where all keep
    them whole; updated weights go to all once a step; weights of layers that are cut go to all
    twice a pass, those outside of layers once a step.

    partition: None where all ranks hold everything: a ring sums the gradients
    passes: of micro batches in a step
    outside: numbers outside of layers
    """
    if partition is None:
        return 2 * parameters * (ranks - 1) // ranks
    shares = [partition.share(rank) for rank in range(ranks)]
    reduced = parameters * (1 - min(shares))
    gathered, sent_whole = parameters, max(shares) * (ranks - 1)
    if partition.cuts_weights:
        gathered = 2 * passes * (parameters - outside) + outside
    return round((passes if partition.cuts_gradients else 1) * reduced + gathered * sent_whole)


def gathered_bytes(layers: int, outside: int, partition: Partition, passes: int) -> int:
    """Return how many bytes the busiest rank sends in a step where a frozen model is cut.

    Layers go to all twice a pass, and what is outside of them once a step.

    layers, outside: the bytes of either
    """
    shares = [partition.share(rank) for rank in range(len(partition.parts))]
    return round((2 * passes * layers + outside) * max(shares) * (len(shares) - 1))
