"""A part of a screen that shows one drawing.

Owns when it is drawn again: after another scene or another size; and the style of each
tone, whose colours are the theme's. Doesn't know what it shows.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

from textual.content import Content
from textual.widgets import Static

from jupiter_tui.drawings.primitives.lines import Lines, Tone, in_ascii, line
from jupiter_tui.model.scene import Scene
from jupiterd.formats import printable

STYLES: Mapping[Tone, str] = {
    Tone.NORMAL: "",
    Tone.STRONG: "bold",
    Tone.FAINT: "$foreground-muted",
    Tone.GOOD: "$text-success",
    Tone.NOTE: "$text-accent",
    Tone.WARN: "$text-warning",
    Tone.BAD: "bold $text-error",
}

FADED = "dim"
"""The style of data that may be out of date."""

Drawing = Callable[[Scene, int, int], Lines]
"""Takes a scene, a width and a height, both in characters."""


class Panel(Static):
    """Shows a drawing; repaints only what has changed, since repainting is what costs."""

    FORGIVES: ClassVar[bool] = True
    """A drawing that raises shows its error in its own panel; tests set this to False."""

    def __init__(
        self, place: str, drawing: Drawing, *, title: str = "", legend: str = "", fades: bool = True
    ) -> None:
        """Take a name, and what to draw; `fades` says whether old data is greyed out."""
        super().__init__(id=place, markup=False)
        self.border_title = title
        self.border_subtitle = legend
        self._drawing = drawing
        self._fades = fades
        self._scene: Scene | None = None
        self._painted: tuple[Lines, bool] | None = None
        self._width = 0
        """The last one that it had; a panel that is hidden has none."""

    def show(self, scene: Scene) -> None:
        """Show another scene."""
        self._scene = scene
        self._draw()

    def on_resize(self) -> None:
        """Draw again for the new size."""
        self._draw()

    def _draw(self) -> None:
        self._width = self.content_size.width or self._width
        if self._scene is None or not self._width:
            return
        lines = self._drawn_lines(self._scene)
        is_faded = self._fades and self._scene.is_faded
        if (lines, is_faded) == self._painted:
            return
        is_as_high = self._painted is not None and len(lines) == len(self._painted[0])
        self._painted = (lines, is_faded)
        self.set_class(not lines, "-empty")
        self.set_class(len(lines) == 1, "-brief")
        # Unwrapped lines of the same number need the same height: no other panel has to move.
        moves = not is_as_high or self.styles.text_wrap != "nowrap"
        shown = painted(lines, is_faded=is_faded, is_ascii=self._scene.options.is_ascii)
        self.update(shown, layout=moves)

    def _drawn_lines(self, scene: Scene) -> Lines:
        try:
            return self._drawing(scene, self._width, self.content_size.height)
        except Exception as error:
            if not self.FORGIVES:
                raise
            message = f"can't be drawn: unexpected {type(error).__name__}: {error}"
            return (line(printable(message), Tone.BAD),)


def painted(lines: Lines, *, is_faded: bool, is_ascii: bool) -> Content:
    """Return the lines as one piece of content; nothing in them is taken for markup."""
    return Content("\n").join(
        Content.assemble(
            *(
                (
                    in_ascii(cell.text) if is_ascii else cell.text,
                    FADED if is_faded else STYLES[cell.tone],
                )
                for cell in line
            )
        )
        for line in lines
    )
