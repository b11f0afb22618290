"""What a node tells others of the models that it serves, and how busy it is with them.

Owns the record, its plain form in telemetry, and what of a member's is believed. Doesn't know when
it is told, or what is decided by it (`routing`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, cast

from jupiterd.cluster.values.bounds import is_count, is_real
from jupiterd.formats import printable
from jupiterd.ids import ArtifactId

SERVING: Final = "serving"
"""Its name in telemetry."""

MAX_MODELS: Final = 16
"""That one node is believed to serve."""

MAX_NAME_CHARACTERS: Final = 128
ARTIFACT_CHARACTERS: Final = 64


@dataclass(frozen=True)
class ModelLoad:
    """One model that a node serves, or loads."""

    name: str
    """What clients call it."""

    artifact: ArtifactId | None
    """None where it is a folder of that machine."""

    is_ready: bool = True
    """It takes requests at once; otherwise it is being loaded."""

    running: int = 0
    """Answers that are written now."""

    queued: int = 0
    """Requests that wait for their turn there."""

    tokens_per_s: float | None = None
    """Of all its answers together, as last measured; None where nothing was."""

    @property
    def waiting(self) -> int:
        """Requests that it has, whether they are answered now or later."""
        return self.running + self.queued


@dataclass(frozen=True)
class NodeServing:
    """What one node serves; without models it says nothing."""

    models: tuple[ModelLoad, ...] = ()
    is_open: bool = True
    """It takes new requests: it isn't drained, and doesn't stop."""

    is_pinned: bool = False
    """Its owner lets it answer on a GPU whether a training wants that or not."""

    trains: bool = False
    """Ranks of a training compute there now."""

    @property
    def says_nothing(self) -> bool:
        """Say whether it is what every node is that serves nothing."""
        return self == NodeServing()

    def to_plain(self) -> dict[str, Any]:
        """Return it for telemetry."""
        return {
            "models": [_row(model) for model in self.models[:MAX_MODELS]],
            "open": self.is_open,
            "pinned": self.is_pinned,
            "trains": self.trains,
        }


NOTHING: Final = NodeServing()


def read_serving(plain: object) -> NodeServing:
    """Return what a member tells of it; rows that can't be meant so are left out."""
    if not isinstance(plain, Mapping):
        return NOTHING
    said = cast("Mapping[str, object]", plain)
    rows = said.get("models")
    known = cast("list[object]", rows) if isinstance(rows, list) else []
    models = (_model(row) for row in islice(known, MAX_MODELS))
    return NodeServing(
        models=tuple(model for model in models if model is not None),
        is_open=said.get("open") is not False,
        is_pinned=said.get("pinned") is True,
        trains=said.get("trains") is True,
    )


def _row(model: ModelLoad) -> dict[str, Any]:
    return {
        "name": model.name[:MAX_NAME_CHARACTERS],
        "artifact": model.artifact or "",
        "ready": model.is_ready,
        "running": model.running,
        "queued": model.queued,
        "tokens_per_s": model.tokens_per_s,
    }


def _model(row: object) -> ModelLoad | None:
    if not isinstance(row, Mapping):
        return None
    fields = _Fields(cast("Mapping[str, object]", row))
    name = fields.text("name", MAX_NAME_CHARACTERS)
    if not name:
        return None
    return ModelLoad(
        name=name,
        artifact=ArtifactId(fields.text("artifact", ARTIFACT_CHARACTERS)) or None,
        is_ready=fields.said.get("ready") is True,
        running=fields.count("running"),
        queued=fields.count("queued"),
        tokens_per_s=fields.rate("tokens_per_s"),
    )


@dataclass(frozen=True)
class _Fields:
    """A row of a member, of which any field may be anything."""

    said: Mapping[str, object] = field(default_factory=dict[str, object])

    def text(self, name: str, most: int) -> str:
        value = self.said.get(name)
        return printable(value[:most]) if isinstance(value, str) else ""

    def count(self, name: str) -> int:
        value = self.said.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            return 0
        return value if is_count(value) and value >= 0 else 0

    def rate(self, name: str) -> float | None:
        value = self.said.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if value >= 0 and is_real(value) else None
