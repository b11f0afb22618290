"""The history of cycles, each with the verdicts of its rounds below it.

Pure. Owns the columns, and the keys of the rows. Doesn't know how a verdict is explained.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jupiter_tui.drawings.primitives.columns import Column, Row, listed
from jupiter_tui.drawings.primitives.lines import Cell, Tone, line
from jupiter_tui.drawings.primitives.listing import Choice, Listing
from jupiter_tui.drawings.primitives.thresholds import CYCLE_TONES, NOTHING, VERDICT_TONES
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiterd.formats import plain
from jupiterd.ids import short

CYCLES = Source("cycles", every_s=2.0)

COLUMNS = (
    Column("what", "CYCLE", 20, 0),
    Column("state", "STATE", 9, 1),
    Column("rounds", "ROUNDS", 7, 4),
    Column("bits", "BITS/BYTE", 9, 2, is_right=True),
    Column("own", "OWN TEXT", 8, 5, is_right=True),
    Column("why", "WHY", 30, 3, grows=True),
)

NONE_YET = "no cycle has been started; "

NEXT_STEPS = {
    "running": "goes on; P pauses it, X stops it",
    "waiting": "waits for machines or a leader; health on 1 says which",
    "stopped": "stopped by somebody; R lets it go on",
    "failed": "N starts another; 2 and 5 say what went wrong",
}
"""State of a cycle -> what it means, and which key to press."""

CYCLE_KEY, VERDICT_KEY = "cycle:", "verdict:"

Document = Mapping[str, Any]


def cycles(scene: Scene, _choice: Choice, width: int) -> Listing:
    """Return a row for each cycle, the newest first, and one for each of its verdicts."""
    watched = scene.view.watched(CYCLES.noun)
    found = watched.document.get("cycles") or ()
    if not found:
        words = watched.trouble or (_none_yet(scene) if watched.document else "asking for them")
        return Listing((), (), (line(plain(words), Tone.FAINT),))
    failure: Document = (scene.view.document.get("cycle") or {}).get("failure") or {}
    failed = {scene.view.cycle.get("id"): failure.get("message")} if failure else {}
    rows = {key: row for each in found for key, row in _rows(each, failed.get(each.get("id")))}
    return listed(COLUMNS, rows, width)


def cycle_of(documents: Document, key: str) -> Document | None:
    """Return the cycle that a row is of."""
    for each in documents.get("cycles") or ():
        if key in {key for key, _ in _rows(each)}:
            return each
    return None


def _none_yet(scene: Scene) -> str:
    return NONE_YET + (
        "jupiterctl cycle start does" if scene.options.is_readonly else "N starts one"
    )


def _rows(cycle: Document, failure: str | None = None) -> Iterator[tuple[str, Row]]:
    state, share = plain(cycle.get("state")), cycle.get("self_hosting")
    name = f"{plain(cycle.get('domain'))} {short(str(cycle.get('id')))}"
    yield (
        f"{CYCLE_KEY}{cycle.get('id')}",
        {
            "what": Cell(name, Tone.STRONG),
            "state": Cell(state, CYCLE_TONES.get(state, Tone.NORMAL)),
            "rounds": Cell(f"{plain(cycle.get('rounds_done'))} of {plain(cycle.get('rounds'))}"),
            "bits": _bits(cycle.get("val_bpb")),
            "own": NOTHING if share is None else Cell(f"{share:.0%}"),
            "why": Cell(_meaning(cycle, state, failure)),
        },
    )
    for verdict in reversed(cycle.get("verdicts") or ()):
        word = plain(verdict.get("verdict"))
        yield (
            f"{VERDICT_KEY}{verdict.get('candidate')}",
            {
                "what": Cell(f"  round {plain(verdict.get('round'))}", Tone.FAINT),
                "state": Cell(word, VERDICT_TONES.get(word, Tone.NORMAL)),
                "rounds": Cell(""),
                "bits": _bits(verdict.get("val_bpb")),
                "own": Cell(""),
                "why": Cell(plain(verdict.get("reason"))),
            },
        )


def _meaning(cycle: Document, state: str, failure: str | None) -> str:
    """Return why a cycle is in its state, and what to press."""
    paused: Document = cycle.get("paused") or {}
    if paused.get("asks"):
        return plain(f"{paused.get('reason')}: A answers")
    if paused:
        return plain(f"paused by {paused.get('name')} at {paused.get('at')}: R lets it go on")
    return plain(failure) if failure else NEXT_STEPS.get(state, "")


def _bits(value: float | None) -> Cell:
    return NOTHING if value is None else Cell(f"{value:.4f}")
