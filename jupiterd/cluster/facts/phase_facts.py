"""The facts by which people steer a cycle between its phases.

Owns what each says. Doesn't know what it leads to (`phase_steering`), or who asked people.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from jupiterd.ids import CycleId


@dataclass(frozen=True)
class PhaseApproved:
    """Set fact: somebody has looked at what a phase made, and the cycle goes on behind it."""

    TYPE: ClassVar[str] = "PhaseApproved"
    VERSION: ClassVar[int] = 1
    WIRE_NAMES: ClassVar[Mapping[str, str]] = {"redo": "attempt"}
    cycle: CycleId
    round: int
    phase: str
    redo: int
    """How often it had been redone by then."""


@dataclass(frozen=True)
class PhaseRedone:
    """Set fact: what a phase made counts no more; its items are done under new ids.

    Nothing that was recorded is withdrawn.
    """

    TYPE: ClassVar[str] = "PhaseRedone"
    VERSION: ClassVar[int] = 1
    WIRE_NAMES: ClassVar[Mapping[str, str]] = {"redo": "attempt"}
    cycle: CycleId
    round: int
    phase: str
    phases: tuple[str, ...]
    """It and those behind it in the round, which are made of it."""
    redo: int
    """1 for the first time that anything is redone in the round, and so on."""


@dataclass(frozen=True)
class SettingChanged:
    """Setting, one for each key and round: another value than the domain file's, from then on."""

    TYPE: ClassVar[str] = "SettingChanged"
    VERSION: ClassVar[int] = 1
    cycle: CycleId
    setting: str
    """Such as `mix_ratio.synthetic_share`."""
    value: str
    """As it would stand in the file."""
    from_round: int
    edit: int


SteeringFact = PhaseApproved | PhaseRedone | SettingChanged
