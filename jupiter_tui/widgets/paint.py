"""Lines with tones as Textual shows them.

Owns the style of each tone; the colours themselves are the theme's. Doesn't know what a line says.
"""

from collections.abc import Mapping

from textual.content import Content

from jupiter_tui.drawings.primitives.lines import Lines, Tone, in_ascii

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
