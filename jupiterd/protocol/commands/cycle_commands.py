"""Commands that start, end and steer cycles.

Owns their fields. Doesn't know what a cycle does. Pure.
"""

from dataclasses import dataclass
from typing import ClassVar

from jupiterd.protocol.commands.command import Command, PlainMap
from jupiterd.protocol.commands.requested_command import RequestedCommand


@dataclass(frozen=True, kw_only=True)
class DescribedCycle(RequestedCommand):
    """A cycle as people ask for it, to start or to be planned."""

    domain_name: str
    domain_yaml: str
    """The text of the domain's file."""
    rounds: int = 1
    size: str | None = None
    """Of the model; None: as the text and the machines are."""
    generator: PlainMap | None = None
    """A model that others made; empty: none, whatever the domain says; None: nobody looked."""
    generator_folder: str | None = None
    """Where it lies, on the machine that is asked."""
    generator_config: str | None = None
    """The text of its config.json."""
    judge: PlainMap | None = None
    judge_folder: str | None = None
    judge_config: str | None = None
    questions_text: str | None = None
    """The domain's own questions, JSON lines, on the machine that is asked; None: it has none."""
    questions: str | None = None
    """The artifact that they have become."""
    init: PlainMap | None = None
    """The model that round 1 begins with: `model`, `config`, `weights_folder` or `weights`, and
    perhaps `adapter_folder` or `adapter`."""
    begins_with: str | None = None
    """What people call it, where that isn't the domain's."""
    training: PlainMap | None = None
    """As `CycleOptions` has it."""
    nodes: str | None = None
    """Who trains, as people say it; None: everybody."""
    without_verdict: bool = False
    engine: str | None = None
    seed: int | None = None
    settings: PlainMap | None = None
    """Of islands, and whether gangs are encrypted."""
    interactive: bool = False
    """It waits after each phase."""
    tokens: int | None = None
    """Of its text, as whoever asks has counted or reckoned."""
    writer: str | None = None
    """Whose text the first round's is most like, as far as its speed goes."""


@dataclass(frozen=True, kw_only=True)
class StartCycle(DescribedCycle):
    """Start it."""

    VERB: ClassVar[str] = "cycle.start"


@dataclass(frozen=True, kw_only=True)
class PlanCycle(DescribedCycle):
    """Say what is to be expected of it."""

    VERB: ClassVar[str] = "cycle.plan"

    is_start: bool = False
    """It is the dry run of a start: nothing else may run."""


@dataclass(frozen=True, kw_only=True)
class StopCycle(Command):
    """Stop a cycle."""

    VERB: ClassVar[str] = "cycle.stop"

    cycle: str | None = None
    """Its domain, or the beginning of its id; None: the one that runs."""


@dataclass(frozen=True, kw_only=True)
class PauseCycle(Command):
    """Pause a cycle."""

    VERB: ClassVar[str] = "cycle.pause"

    cycle: str | None = None
    node: str | None = None
    """On which somebody asked for it, as that one says."""


@dataclass(frozen=True, kw_only=True)
class ResumeCycle(Command):
    """Go on with a cycle, with what people answer where it waits."""

    VERB: ClassVar[str] = "cycle.resume"

    cycle: str | None = None
    redo: str | None = None
    """The phase that is done again, or `last`."""
    settings: PlainMap | None = None
    """Key -> value, as in the domain's file."""
    auto: bool = False
    """Nothing is asked any more."""


@dataclass(frozen=True, kw_only=True)
class ExtendCycle(Command):
    """Give a cycle more rounds."""

    VERB: ClassVar[str] = "cycle.extend"

    rounds: int = 1
    """More than it has."""
    cycle: str | None = None


@dataclass(frozen=True, kw_only=True)
class RollBackStudent(Command):
    """Take the newest student out of force as a generator."""

    VERB: ClassVar[str] = "cycle.rollback"

    cycle: str | None = None


@dataclass(frozen=True, kw_only=True)
class PromoteModel(Command):
    """Let a round's model generate."""

    VERB: ClassVar[str] = "model.promote"

    model: str = ""
    """Its name, or the beginning of its id."""
    replaces: bool = False
    """Whoever is on trial makes room for it."""


@dataclass(frozen=True, kw_only=True)
class SwitchBranch(Command):
    """Let a cycle go on from another branch of its checkpoints."""

    VERB: ClassVar[str] = "cluster.switch"

    cycle: str
    leaf: str
    """The branch's end; empty: the heaviest counts again."""
