"""A row of the table: what was measured, and what was measured alongside it.

Owns its JSON form, by which a part's process hands it over, and the Markdown table. Doesn't know
what is measured.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

HEAD = ("| what | measured | alongside | ratio | note |", "|---|---|---|---|---|")


@dataclass(frozen=True)
class Row:
    """One figure."""

    what: str
    value: float | None
    """None: it was not run, and the note says why."""
    unit: str = ""
    other: float | None = None
    """What the rival reached, in the same unit and the same call."""
    note: str = ""

    def to_json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self))

    def cells(self) -> tuple[str, ...]:
        """Return what the table shows."""
        measured = "not run" if self.value is None else f"{shown(self.value)} {self.unit}".strip()
        other = "" if self.other is None else shown(self.other)
        ratio = f"{self.value / self.other:.2f}" if self.value and self.other else ""
        return self.what, measured, other, ratio, self.note


def shown(value: float) -> str:
    """Return a number with three digits or more."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rows_of(output: str) -> Iterator[Row]:
    """Yield the rows among the lines that a part's process has printed."""
    for line in output.splitlines():
        if line.startswith('{"what"'):
            yield Row(**json.loads(line))


def latest(rows: Iterable[Row]) -> list[Row]:
    """Return the last row of each name: a part prints it again once its rival is measured."""
    return list({row.what: row for row in rows}.values())


def markdown(rows: Sequence[Row]) -> str:
    """Return the table."""
    lines = (f"| {' | '.join(row.cells())} |" for row in rows)
    return "\n".join([*HEAD, *lines])
