"""What stands on a terminal in which nothing else has room."""

from jupiter_tui.drawings.primitives.lines import Lines, Tone, line
from jupiter_tui.model.scene import Scene

MIN_COLUMNS = 60
MIN_LINES = 15


def too_small(_scene: Scene, width: int, height: int) -> Lines:
    """Return the size that there is and the size that is needed."""
    sizes = f"{width} x {height}, needs {MIN_COLUMNS} x {MIN_LINES}"
    return (line(f"terminal too small: {sizes}", Tone.WARN), line("q quits", Tone.FAINT))
