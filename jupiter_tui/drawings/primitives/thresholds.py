"""The limits from which on a reading is a warning, and the tones of states.

Pure. Owns both, and the text of ages. Doesn't know where they are shown.
"""

from collections.abc import Mapping

from jupiter_tui.drawings.primitives.lines import Cell, Tone
from jupiterd.client.watch import Link
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.values.severity import Severity
from jupiterd.cluster.values.timing import LAN
from jupiterd.formats import MISSING

RAM_WARN_PERCENT = 90.0
RAM_BAD_PERCENT = 97.0
HEAT_WARN_CELSIUS, HEAT_BAD_CELSIUS = 83.0, 92.0
"""NVIDIA's cards slow down somewhere in the eighties or nineties, by model."""

JUST_NOW_S = 2.0
"""Heartbeats come twice a second and their news a little later: nobody is younger than this."""

NODE_TONES: Mapping[str, Tone] = {
    Liveness.ALIVE: Tone.GOOD,
    Liveness.SUSPECT: Tone.WARN,
    Liveness.GONE: Tone.BAD,
}
"""States that aren't here, such as `pending`, are notes."""

SEVERITY_TONES: Mapping[str, Tone] = {
    Severity.INFO: Tone.NOTE,
    Severity.WARNING: Tone.WARN,
    Severity.ERROR: Tone.BAD,
}

LINK_TONES: Mapping[Link, Tone] = {
    Link.CONNECTING: Tone.NOTE,
    Link.LIVE: Tone.GOOD,
    Link.STALE: Tone.WARN,
    Link.LOST: Tone.BAD,
}

PHASE_SIGNS: Mapping[str, tuple[str, Tone]] = {
    "done": ("✓", Tone.GOOD),
    "skipped": ("-", Tone.FAINT),
    "failed": ("✗", Tone.BAD),
    "running": ("▶", Tone.STRONG),
    "waiting": ("·", Tone.FAINT),
}

VERDICT_TONES: Mapping[str, Tone] = {
    "PROMOTE": Tone.GOOD,
    "HOLD": Tone.NOTE,
    "REJECT": Tone.BAD,
    "ABSTAIN": Tone.WARN,
}

CYCLE_TONES: Mapping[str, Tone] = {
    "running": Tone.GOOD,
    "finished": Tone.GOOD,
    "waiting": Tone.WARN,
    "paused": Tone.WARN,
    "stopped": Tone.WARN,
    "failed": Tone.BAD,
}

NOTHING = Cell(MISSING, Tone.FAINT)


def percent(value: float | None, *, warn: float = 101.0, bad: float = 101.0) -> Cell:
    """Return a percentage, as a warning from `warn` on and as bad from `bad` on."""
    if value is None:
        return NOTHING
    tone = Tone.BAD if value >= bad else Tone.WARN if value >= warn else Tone.NORMAL
    return Cell(f"{value:.0f} %", tone)


def heat_tone(celsius: float | None) -> Tone:
    """Return the tone of a temperature in degrees Celsius; normal where it isn't known."""
    if celsius is None or celsius < HEAT_WARN_CELSIUS:
        return Tone.NORMAL
    return Tone.BAD if celsius >= HEAT_BAD_CELSIUS else Tone.WARN


def age(seconds: float | None) -> Cell:
    """Return an age in seconds as text in one unit; long silence is a warning."""
    if seconds is None:
        return Cell("never", Tone.FAINT)
    tone = Tone.NORMAL
    if seconds >= LAN.suspect_s:
        tone = Tone.BAD if seconds >= LAN.gone_s else Tone.WARN
    return Cell(_ago(seconds), tone)


def _ago(seconds: float) -> str:
    if seconds < JUST_NOW_S:
        return "now"
    for unit, length_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length_s:
            return f"{seconds // length_s:.0f} {unit}"
    return f"{seconds:.0f} s"
