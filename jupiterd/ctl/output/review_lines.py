"""Lines about the results of a phase, for a review before the cycle goes on.

Pure. Owns the texts. Samples are untrusted text: control characters are removed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.ctl.output.phase_lines import dropped_line
from jupiterd.formats import plain, printable
from jupiterd.ids import short

SHOWN_CHARACTERS = 160
ALL_REASONS = 100

Review = Mapping[str, Any]
Row = Mapping[str, Any]


def review_lines(review: Review, *, is_whole: bool = False) -> list[str]:
    """Return how much came in, went out and was dropped, with reasons and a few samples.

    is_whole: show the whole stored texts of the samples
    """
    head = f"round {review['round']} {plain(review.get('phase'))}"
    counts = [f"{name} {review[name]:,}" for name in ("in", "out") if review.get(name) is not None]
    lines = [f"{head}  {', '.join(counts)}"] if counts else [head]
    if review.get("detail"):
        lines.append(f"  {plain(review['detail'])}")
    if dropped := dropped_line(review.get("dropped") or {}, ALL_REASONS):
        lines.append(f"  dropped {printable(dropped)}")
    where = _elsewhere(review)
    lines += _samples(f"kept{where}", review.get("kept_samples") or [], is_whole=is_whole)
    dropped = review.get("dropped_samples") or []
    return lines + _samples(f"dropped{where}", dropped, is_whole=is_whole)


def _elsewhere(review: Review) -> str:
    """Return which phase the samples are from, if not from the reviewed phase."""
    sampled = review.get("samples_round"), review.get("samples_phase")
    if None in sampled or sampled == (review["round"], review.get("phase")):
        return ""
    return f" by {plain(sampled[1])} of round {sampled[0]}"


def _samples(what: str, rows: Sequence[Row], *, is_whole: bool) -> list[str]:
    if not rows:
        return []
    samples = (line for row in rows for line in _sample(row, is_whole=is_whole))
    return [f"{what}, {len(rows)} of them:", *samples]


def _sample(row: Row, *, is_whole: bool) -> list[str]:
    said = [plain(row[name]) for name in ("reason", "template") if row.get(name)]
    messages: Sequence[Row] = row.get("messages") or ()
    said += [f"a conversation of {len(messages)} messages"] if messages else []
    named = ", ".join([*said, plain(row.get("source_uri"))])
    return sample_lines("  ", f"{short(str(row.get('id', '')))} ({named})", row, is_whole=is_whole)


def sample_lines(margin: str, head: str, row: Row, *, is_whole: bool) -> list[str]:
    """Return one sample under its heading: the start of its text on one line, or all of it."""
    text = str(row.get("text") or "")
    if is_whole:
        return [f"{margin}{head}:", *(f"{margin}  {printable(each)}" for each in text.splitlines())]
    beginning = printable(" ".join(text.split())[:SHOWN_CHARACTERS])
    return [f"{margin}{head}" + (f": {beginning}" if beginning else "")]
