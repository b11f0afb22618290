"""Sources of TeX as Markdown: sections, lists and emphasis; formulas and listings as they stand.

Owns which macros are written as what; pylatexenc parses them and knows the others.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from jupiterd.workers.data.extract.encodings import decoded
from jupiterd.workers.data.extractors.raw_document import RawDocument
from jupiterd.workers.data.skips import SkipReason, UnreadableError

_BODY = re.compile(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", re.DOTALL)
_LISTING = re.compile(
    r"\\begin\{(verbatim|lstlisting|minted|Verbatim|alltt)\*?\}(?:\[[^\]\n]*\])?(?:\{[^}\n]*\})?\n?"
    r"(.*?)\\end\{\1\*?\}",
    re.DOTALL,
)
_SECTIONS = {
    "part": "#", "chapter": "#", "section": "#", "subsection": "##", "subsubsection": "###",
    "paragraph": "####",
}  # fmt: skip
_WRAPPED = {"emph": "*", "textit": "*", "textbf": "**", "texttt": "`", "code": "`"}
_LEFT_OUT = ("cite", "citep", "citet", "label", "ref", "eqref", "includegraphics", "bibliography")
_PLACE = "\ue000{}\ue001"
_PLACES = re.compile("\ue000(\\d+)\ue001")
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*\n")


def read(given: RawDocument) -> Mapping[str, Any]:
    """Return the `text`.

    Raises:
        UnreadableError: it is none, or blank.
    """
    source = decoded(given.data, given.charset, given.language)
    body = _BODY.search(source)
    listings: list[str] = []

    def set_aside(found: re.Match[str]) -> str:
        listings.append(found.group(2).strip("\n").rstrip())
        return f"\n\n{_PLACE.format(len(listings) - 1)}\n\n"

    marked = _LISTING.sub(set_aside, body.group(1) if body is not None else source)
    text = _BLANK_LINES.sub("\n\n", _converter()(marked)).strip()
    text = _PLACES.sub(lambda found: f"```\n{listings[int(found.group(1))]}\n```", text)
    if not text:
        raise UnreadableError(SkipReason.EMPTY)
    return {"text": text}


@cache
def _converter() -> Callable[[str], str]:
    from pylatexenc import latex2text  # pyright: ignore[reportMissingTypeStubs]

    library: Any = latex2text
    spec = library.MacroTextSpec
    macros = [
        *(spec(name, simplify_repl=f"\n\n{mark} %(3)s\n\n") for name, mark in _SECTIONS.items()),
        *(spec(name, simplify_repl=f"{mark}%s{mark}") for name, mark in _WRAPPED.items()),
        *(spec(name, discard=True) for name in _LEFT_OUT),
        spec("item", simplify_repl="\n- %s"),
    ]
    context = library.get_default_latex_context_db()
    context.add_context_category("markdown", macros=macros, prepend=True)
    converter = library.LatexNodes2Text(
        latex_context=context, math_mode="verbatim", strict_latex_spaces=False
    )
    return lambda text: str(converter.latex_to_text(text, tolerant_parsing=True))
