"""What was compared: the figures of each tiny model, in one file beside this one.

Owns the file and what counts as alike. The tables follow from it without any engine.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("compared.json")

STEPS = 20
MOST_LOGIT_SHARE = 1e-4
"""Of the spread of the logits."""
MOST_LOSS_NATS = 1e-4


@dataclass(frozen=True)
class Compared:
    """What came of a tiny model."""

    architecture: str
    variant: str
    """What it has beside the usual; empty: nothing."""
    traits: frozenset[str]
    logits: float = -1.0
    """Largest difference of a logit, as a share of their spread."""
    losses: float = -1.0
    """Largest difference of a step's loss, in nats."""
    error: str = ""
    """Why there is nothing to compare."""

    @property
    def title(self) -> str:
        """Return what it is called."""
        return f"{self.architecture} {self.variant}".strip()

    @property
    def is_alike(self) -> bool:
        """Say whether both engines compute the same."""
        was_compared = not self.error
        return was_compared and self.logits <= MOST_LOGIT_SHARE and self.losses <= MOST_LOSS_NATS

    @property
    def why(self) -> str:
        """Return the figure or the error that failed."""
        if self.error:
            return self.error
        if self.logits > MOST_LOGIT_SHARE:
            return f"logits differ by {self.logits:.1g} of their spread"
        return f"losses of {STEPS} steps differ by {self.losses:.1g} nats"


def load() -> list[Compared]:
    """Return everything that was compared, in the order of the file."""
    if not FILE.is_file():
        return []
    rows: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return [_read(**row) for row in rows]


def _read(traits: list[str], **row: Any) -> Compared:
    return Compared(traits=frozenset(traits), **row)


def keep(architecture: str, found: Sequence[Compared]) -> None:
    """Write down what came of an architecture, in the place of what is there of it."""
    others = [each for each in load() if each.architecture != architecture]
    rows = sorted([*others, *found], key=lambda each: each.architecture)
    lines = [json.dumps(_plain(each), ensure_ascii=False) for each in rows]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def _plain(each: Compared) -> dict[str, object]:
    figures = {"logits": float(f"{each.logits:.2g}"), "losses": float(f"{each.losses:.2g}")}
    told = {"error": each.error} if each.error else figures
    return {
        "architecture": each.architecture,
        "variant": each.variant,
        "traits": sorted(each.traits),
        **told,
    }
