"""The samples that a round left out, read on this machine, with reasons and the limits they missed.

Owns reading the folders that the daemon names, and the lines. Samples are untrusted text: control
characters are removed. Doesn't find the folders.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.ctl.output.review_lines import sample_lines
from jupiterd.cycle.data.reason_words import is_reason, reason_words
from jupiterd.errors import CorruptArtifactError, NotFoundError
from jupiterd.formats import plain
from jupiterd.ids import short
from jupiterd.store.sample_lookup import stored_drop_rows, stored_rows

SKIPPED, SKIPPED_FILE = "skipped", "skipped.jsonl.zst"
"""An output of readers and its file: addresses and reasons, without text."""

SHOWN_OF_REASON = 3
"""How many samples of each reason are shown if no reason is named."""

Drops = Mapping[str, Any]


@dataclass(frozen=True)
class Dropped:
    """One text that was dropped, or one file that was skipped."""

    reason: str
    uri: str
    id: str = ""
    kind: str = ""
    text: str = ""
    measure: str = ""
    value: float | None = None
    limit: float | None = None
    detail: str = ""
    """Further details from a reader."""

    def to_plain(self) -> dict[str, Any]:
        """Return the fields for documents; missing values are None."""
        return {
            "reason": self.reason,
            "source_uri": self.uri,
            "id": self.id or None,
            "kind": self.kind or None,
            "measure": self.measure or None,
            "value": self.value,
            "limit": self.limit,
            "detail": self.detail or None,
            "text": self.text or None,
        }

    @property
    def missed(self) -> str:
        """The measured value and the limit that it missed; empty: nothing was measured."""
        if not self.measure or self.value is None or self.limit is None:
            return ""
        bound = "at least" if self.value < self.limit else "at most"
        return f"{plain(self.measure)} {self.value:.4g}, {bound} {self.limit:.4g}"


def with_samples(drops: Drops, reason: str | None, phase: str | None = None) -> dict[str, Any]:
    """Return the daemon's document with the samples in its folders.

    Args:
        drops: the daemon's document.
        reason: return only samples with this reason; None: all.
        phase: return only samples of this phase; None: all.

    Raises:
        NotFoundError: no sample was left out for that reason.
    """
    rows = [row for row in drops["phases"] if phase in (None, row["phase"])]
    phases = [_with_samples(row, reason) for row in rows]
    known = sorted({each for row in rows for each in row["dropped"]})
    is_known = any(is_reason(each, reason or "") for each in known)
    if reason is not None and not is_known and not any(row["samples"] for row in phases):
        raise NotFoundError(
            f"nothing of round {drops['round']} was left out for {reason}",
            f"reasons that there were: {', '.join(known) or 'none'}",
        )
    return {**drops, "phases": phases}


def _with_samples(row: Drops, reason: str | None) -> dict[str, Any]:
    found: dict[tuple[str, str], Dropped] = {}
    damaged: list[str] = []
    for folder in row["folders"]:
        try:
            for each in _read(str(folder["name"]), Path(folder["path"])):
                if reason is None or is_reason(each.reason, reason):
                    found.setdefault((each.reason, each.id or each.uri), each)
        except CorruptArtifactError:
            damaged.append(str(folder["path"]))
    ranked = sorted(found.values(), key=lambda each: (each.reason, each.id, each.uri))
    counts = {
        name: n for name, n in row["dropped"].items() if reason is None or is_reason(name, reason)
    }
    samples = [each.to_plain() for each in ranked]
    return {**row, "dropped": counts, "samples": samples, "damaged": damaged}


def _read(name: str, folder: Path) -> Iterator[Dropped]:
    if name == SKIPPED:
        for row in stored_rows(folder / SKIPPED_FILE):
            uri, detail = str(row.get("uri") or ""), str(row.get("detail") or "")
            yield Dropped(str(row["reason"]), uri, detail=detail)
        return
    for sample, row in stored_drop_rows(folder):
        yield Dropped(
            reason=str(row["reason"]),
            uri=sample.source_uri,
            id=sample.id,
            kind=sample.kind,
            text=sample.text,
            measure=str(row.get("measure") or ""),
            value=_number(row.get("value")),
            limit=_number(row.get("limit")),
        )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def drop_lines(drops: Drops, *, is_of_one_reason: bool, is_whole: bool = False) -> list[str]:
    """Return lines about dropped samples, by phase and by reason, in the document's order.

    is_whole: show the whole stored texts
    """
    lines: list[str] = []
    for row in drops["phases"]:
        if row["dropped"] or row["samples"]:
            most = None if is_of_one_reason else SHOWN_OF_REASON
            lines += _phase(drops["round"], row, most, is_whole=is_whole)
    return lines or [f"round {drops['round']} left nothing out"]


def _phase(number: int, row: Drops, most: int | None, *, is_whole: bool) -> list[str]:
    into = "" if row["in"] is None else f" of {row['in']:,}"
    lines = [
        f"round {number} {plain(row['phase'])}: left out {sum(row['dropped'].values()):,}{into}"
    ]
    by_reason: dict[str, list[Dropped]] = {name: [] for name in row["dropped"]}
    for each in row["samples"]:
        by_reason.setdefault(each["reason"], []).append(_from_plain(each))
    for reason, found in by_reason.items():
        count = row["dropped"].get(reason, len(found))
        lines.append(f"  {plain(reason_words(reason))} {count:,}" + (":" if found else ""))
        lines += [line for each in found[:most] for line in _dropped_lines(each, is_whole=is_whole)]
    if row["missing"]:
        lines.append(f"  the rest lies on {plain(', '.join(row['missing']))}, not in reach")
    return lines + [f"  {plain(path)} is damaged" for path in row["damaged"]]


def _from_plain(row: Mapping[str, Any]) -> Dropped:
    named = {
        name: row[name] or "" for name in ("reason", "id", "kind", "measure", "detail", "text")
    }
    return Dropped(uri=row["source_uri"], value=row["value"], limit=row["limit"], **named)


def _dropped_lines(each: Dropped, *, is_whole: bool) -> list[str]:
    named = " ".join(filter(None, [short(each.id), plain(each.uri)]))
    why = plain(each.detail) if each.detail else each.missed
    head = f"{named} ({why})" if why else named
    return sample_lines("    ", head, {"text": each.text}, is_whole=is_whole and bool(each.text))
