"""The training and validation loss of the present round.

Pure. Owns its caption, and the note on a curve that isn't whole. Doesn't know how a curve is stored
or plotted.
"""

from functools import partial

from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone, line, width_of
from jupiter_tui.drawings.primitives.plot import MARK, Layer, plotted
from jupiter_tui.model.loss_history import History, history, smoothed
from jupiter_tui.model.loss_view import Axis, Look
from jupiter_tui.model.scene import Scene
from jupiterd.formats import duration, plain

CAPTION_LINES = 1

UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def loss(look: Look, scene: Scene, width: int, height: int) -> Lines:
    """Return the curve in `height` lines, with a caption."""
    known = known_loss(scene)
    if not known.points or width <= 0:
        return (line(_nothing(scene), Tone.FAINT),)
    points = known.along(look.axis)
    if not points:
        note = f"nobody noted the {look.axis} of each step; x goes back to steps"
        return (_caption(known, look, width), line(note, Tone.FAINT))
    is_smooth = look.smoothing > 0
    raw = Layer(points, Tone.FAINT if is_smooth else Tone.GOOD)
    above = [Layer(smoothed(points, look.smoothing), Tone.GOOD)] if is_smooth else []
    held_out = Layer(known.validated_along(look.axis), Tone.WARN, is_marked=True)
    chart = plotted(
        [raw, *above, held_out],
        width,
        height - CAPTION_LINES,
        is_ascii=scene.options.is_ascii,
        is_log=look.is_log,
        named=partial(_named, look.axis),
    )
    return (_caption(known, look, width), *chart)


def known_loss(scene: Scene) -> History:
    """Return what is known of the loss of the round that is shown."""
    view = scene.view
    run, round_number = str(view.cycle.get("id") or ""), view.cycle.get("round") or 0
    if view.curve.points and (view.curve.cycle, view.curve.round) != (run, round_number):
        # The next round has begun and doesn't train yet: the last round's curve stays until then.
        shown = history(view.watched(curve_noun(run)).document, view.curve, run, round_number)
        return shown if shown.points else history(view.charted, view.curve, run, view.curve.round)
    return history(view.watched(curve_noun(run)).document, view.curve, run, round_number)


def curve_noun(run: str) -> str:
    """Return what the daemon calls the curve of a run."""
    return f"curve/{run}"


def amount_of(tokens: float) -> str:
    """Return a number of tokens with about three digits, such as `1.24 M`."""
    for size, letter in UNITS:
        if tokens >= size:
            return f"{tokens / size:.3g} {letter}"
    return f"{tokens:.0f}"


def _caption(known: History, look: Look, width: int) -> Line:
    """Return the last values, in the tones of their curves, as far as there is room."""
    cells = _values(known, look)
    while len(cells) > 1 and width_of(tuple(cells)) > width:
        cells.pop()
    return tuple(cells)


def _values(known: History, look: Look) -> list[Cell]:
    points = known.along(Axis.STEP)
    cells = [Cell(f"round {known.round}  ", Tone.FAINT)]
    if look.is_log:
        cells.append(Cell("log y  ", Tone.NOTE))
    if look.smoothing > 0:
        mean = smoothed(points, look.smoothing)[-1][1]
        cells.append(Cell(f"smoothed {mean:.3f} ({look.smoothing:g})  ", Tone.GOOD))
    cells.append(Cell(f"last {points[-1][1]:.3f}", Tone.FAINT if look.smoothing else Tone.GOOD))
    if known.missing:
        cells.append(Cell(f"  without {plain(', '.join(known.missing))}", Tone.WARN))
    if known.validations:
        cells.append(Cell(f"  {MARK} held out {known.validations[-1].loss:.3f}", Tone.WARN))
    return cells


def _nothing(scene: Scene) -> str:
    trouble = scene.view.watched(curve_noun(str(scene.view.cycle.get("id") or ""))).trouble
    return (
        f"no curve: {plain(trouble)}" if trouble else "nothing has been trained in this round yet"
    )


def _named(axis: Axis, x: float) -> str:
    match axis:
        case Axis.STEP:
            return f"step {x:,.0f}"
        case Axis.TOKENS:
            return f"{amount_of(x)} tokens"
        case Axis.TIME:
            return duration(x)
