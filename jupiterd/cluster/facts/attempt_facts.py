"""The facts of a gang's attempts: each is opened, may be adopted by a later leader, and is closed.

Owns what each says. Doesn't know how attempts are numbered for people (`attempt_numbers`), or run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from jupiterd.ids import CycleId, NodeId


@dataclass(frozen=True)
class AttemptOpened:
    """Set fact: a gang is launched."""

    TYPE: ClassVar[str] = "EpochOpened"
    VERSION: ClassVar[int] = 1
    WIRE_NAMES: ClassVar[Mapping[str, str]] = {"attempt": "epoch"}
    UNTOLD: ClassVar[frozenset[str]] = frozenset({"stage", "parts"})
    cycle: CycleId
    round: int
    attempt: int
    gang: tuple[NodeId, ...]
    """The members in rank order; a node with two ranks stands twice."""
    engine: str
    """Such as torch/gloo or mlx/ring; without the second part for a gang of one."""
    from_checkpoint: str
    """Artifact id of the checkpoint it starts from, or empty."""
    from_step: int
    engine_reason: str = ""
    """Why it is that engine."""
    micro_batches: tuple[int, ...] = ()
    """Sequences that each rank holds in memory at a time; empty: as the plan says."""
    follows: str = ""
    """The last of the branch that its checkpoints go on from; empty: the one it starts from."""
    predicted_tokens_per_s: float = 0.0
    """Of that gang, when it began in this round; 0: nobody could know."""
    stage: int = 0
    """In which the model is cut over the ranks; 0: each holds all of it."""
    parts: tuple[int, ...] = ()
    """How much of it each rank holds then, compared with the others."""


@dataclass(frozen=True)
class AttemptAdopted:
    """Set fact: another leader follows that gang; the last in the order is in force."""

    TYPE: ClassVar[str] = "EpochAdopted"
    VERSION: ClassVar[int] = 1
    WIRE_NAMES: ClassVar[Mapping[str, str]] = {"attempt": "epoch"}
    cycle: CycleId
    attempt: int


LEFT_OPEN: Final = "its leader fell silent, and it couldn't be taken over"
"""Why an attempt ended that nobody saw end: how long it trained isn't known."""


@dataclass(frozen=True)
class AttemptClosed:
    """Set fact: that gang has ended, unless a later leader has adopted it; the last is in force."""

    TYPE: ClassVar[str] = "EpochClosed"
    VERSION: ClassVar[int] = 1
    WIRE_NAMES: ClassVar[Mapping[str, str]] = {"attempt": "epoch"}
    cycle: CycleId
    attempt: int
    reason: str
    elapsed_s: float = 0.0
    code: str = ""
    """Of the error that ended it, if one did; see `errors`."""
