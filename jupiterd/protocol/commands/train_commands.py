"""Commands about training runs without a cycle.

Owns their fields. Doesn't know how a run is planned. Pure.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from jupiterd.protocol.commands.command import Command, PlainMap
from jupiterd.protocol.commands.requested_command import RequestedCommand

REFUSED_NOW = "refused_now"
"""In the answer to a dry run: what hinders the order just now, its message and hint."""


@dataclass(frozen=True, kw_only=True)
class StartTraining(RequestedCommand):
    """Train a model on a data set, or on text that is made into one on the way."""

    VERB: ClassVar[str] = "train.start"

    source: PlainMap | None = None
    """Text, as `DataSettings` has it; None: `data` is made already."""
    name: str | None = None
    """Of the data set that is made of it."""
    node: str | None = None
    """Whose disk the text lies on."""
    tokenizer: str | None = None
    """The data set whose tokenizer cuts it."""
    data: str | None = None
    """The name of a data set, or the beginning of its id."""
    engine: str | None = None
    nodes: str | None = None
    """Who trains, as people say it; None: everybody."""
    model: str
    """A size, or what people call the model that `config` describes."""
    config: str | None = None
    """The text of a Hugging Face model's config.json."""
    weights_folder: str | None = None
    """Where its weights lie, on the machine that is asked."""
    weights: str | None = None
    """The artifact that they are in the cluster."""
    adapter_folder: str | None = None
    """Where an adapter to these weights lies, on the machine that is asked."""
    adapter: str | None = None
    """The artifact that it is in the cluster: training begins with it."""
    tokenizer_of_weights: PlainMap | None = None
    """A plain identity; empty: they came without one; None: nobody has looked."""
    settings: PlainMap = field(default_factory=dict[str, object])
    """As `RunSettings` has them."""


@dataclass(frozen=True, kw_only=True)
class StopTraining(Command):
    """Stop a run."""

    VERB: ClassVar[str] = "train.stop"

    train: str = ""
    """Its name, or the beginning of its id; empty: the one that runs."""


@dataclass(frozen=True, kw_only=True)
class ResumeTraining(Command):
    """Go on with a run that was stopped."""

    VERB: ClassVar[str] = "train.resume"

    train: str = ""
    """Its name, or the beginning of its id; empty: the one that was stopped last."""
