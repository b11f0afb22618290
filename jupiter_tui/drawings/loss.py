"""The loss curve of the present round.

Pure. Owns its caption. Doesn't know how a curve is kept or plotted.
"""

from jupiter_tui.curve import smoothed
from jupiter_tui.drawings.lines import Lines, Tone, line
from jupiter_tui.drawings.plot import plotted
from jupiter_tui.scene import Scene

CAPTION_LINES = 1


def loss(scene: Scene, width: int, height: int) -> Lines:
    """Return the curve in `height` lines, with a caption."""
    curve = scene.view.curve
    if not curve.points or width <= 0:
        return (line("no training seen yet", Tone.FAINT),)
    points = smoothed(curve.points)
    caption = (
        f"round {curve.round}, smoothed {points[-1].loss:.3f}, last {curve.points[-1].loss:.3f}"
    )
    rows = height - CAPTION_LINES
    drawn = plotted(points, width, rows, is_ascii=scene.options.is_ascii)
    return (line(caption, Tone.FAINT), *(line(text) for text in drawn))
