"""cycles.tsv: one line for each finished round of every cycle, for spreadsheets and `cut`.

Owns the columns and the form of the file. Pure: rows come in, text goes out. The whole text follows
from the rows, so whoever writes it anew loses and doubles nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from jupiterd.cycle.base.work_item import Phase
from jupiterd.formats import printable

JUDGED_AT: Final = "judged_at"
"""In the summary of the gate's work: when it decided, UTC, ISO 8601."""


@dataclass(frozen=True)
class RoundRow:
    """One finished round; what isn't known is None or empty."""

    date: str
    """When the gate decided."""
    cycle: str
    domain: str
    round: int
    verdict: str
    val_bpb: float | None
    incumbent_bpb: float | None
    tokens: int | None
    """That this round has trained on."""
    seconds: Mapping[str, float]
    """Phase -> how long it took."""
    synthetic_share: float | None
    """Of the bytes that were packed."""
    generator: str
    """Who wrote synthetic text in it, by a comma where there are several."""
    candidate: str


_TIMES = [f"{phase}_s" for phase in Phase]
COLUMNS: Final = (
    "date", "cycle", "domain", "round", "verdict", "val_bpb", "incumbent_bpb", "tokens", *_TIMES,
    "synthetic_share", "generator", "candidate",
)  # fmt: skip


def table_text(rows: Iterable[RoundRow]) -> str:
    """Return the file's text: the names of the columns, then the rows in their order."""
    lines = [COLUMNS, *map(_fields, rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _fields(row: RoundRow) -> tuple[str, ...]:
    return (
        printable(row.date),
        printable(row.cycle),
        printable(row.domain),
        str(row.round),
        printable(row.verdict),
        _number(row.val_bpb, ".6f"),
        _number(row.incumbent_bpb, ".6f"),
        _number(row.tokens, "d"),
        *(_number(row.seconds.get(phase), ".1f") for phase in Phase),
        _number(row.synthetic_share, ".4f"),
        printable(row.generator),
        printable(row.candidate),
    )


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
