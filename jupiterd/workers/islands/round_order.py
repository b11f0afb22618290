"""What an island trains on in the round that an outer step orders, as its state keeps it.

Owns that record and its form in a checkpoint. Doesn't know who decides it, or weights.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from jupiterd.cycle.base.positions import Range, read
from jupiterd.errors import CorruptArtifactError
from jupiterd.protocol.frames import OuterStepArrived


@dataclass(frozen=True)
class RoundOrder:
    """One island's order for the round that follows an outer step."""

    step: str
    """The outer step's name."""
    number: int
    """Outer steps taken, this one among them; the line's first has 0."""
    first_step: int
    """Inner steps that are done before the round, of all the run's."""
    steps: int
    """Inner steps of the round; 0: all were given out before."""
    batch_sequences: int
    """Of this island, in each of them; 0: it has no part in this round."""
    positions: str
    """Where they lie in the order of the data, see `cycle.positions`."""
    island: str = ""
    """Whose order it is."""
    lag: int = 1
    """See `closes`."""
    scored_step: int = 0
    """Steps that the weights after it contain, where they are scored on held-out text; 0: they
    aren't."""

    @classmethod
    def of(cls, arrived: OuterStepArrived, island: str) -> Self:
        """Return what a daemon has handed in."""
        return cls(
            arrived.step,
            arrived.number,
            arrived.first_step,
            arrived.steps,
            arrived.batch_sequences,
            arrived.positions,
            island,
            arrived.lag,
            arrived.scored_step,
        )

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild what `to_plain` gave.

        Raises:
            CorruptArtifactError: it didn't give that.
        """
        told: dict[str, Any] = {"scored_step": 0, **plain}  # it came later than the others
        kinds = {field.name: field.type for field in fields(cls)}
        if {name: type(value) for name, value in told.items()} != kinds:
            raise CorruptArtifactError("a checkpoint's place between outer steps is not ours")
        return cls(**told)

    def to_plain(self) -> dict[str, Any]:
        """Return it as a checkpoint has it."""
        return asdict(self)

    @property
    def end_step(self) -> int:
        """Return the inner steps that are done after the round."""
        return self.first_step + self.steps

    @property
    def closes(self) -> int:
        """Return the number of the step whose round ended with this one; below 0: none did."""
        return self.number - self.lag

    @property
    def has_part(self) -> bool:
        """Say whether the island trains in this round."""
        return self.steps > 0 and self.batch_sequences > 0

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Return the positions of the round."""
        return read(self.positions)
