"""Whether a candidate works at all, before it is compared with anything.

Owns the bounds. Doesn't know how the model was loaded or its text written.
"""

from dataclasses import dataclass

MAX_BAD_SHARE = 0.5
"""Greatest share of the completions that may loop or be empty: a good model does so now and then,
a collapsed one nearly always."""


@dataclass(frozen=True)
class Sanity:
    """What was seen when a model wrote a few seeded completions of held-out text."""

    loads: bool
    trouble: str = ""
    """Why it doesn't load."""
    seed: int = 0
    completions: int = 0
    looping: int = 0
    empty: int = 0
    code: int = 0
    """Completions that ought to be code of a language that can be parsed here."""
    parsed: int = 0
    """Of those, the ones that parse; code is never run."""
    generator_parsed: int | None = None
    """The same of the generator in force; None where it was not asked."""


def insane(sanity: Sanity) -> str:
    """Say what is wrong with the model; empty where nothing is."""
    if not sanity.loads:
        return f"the candidate doesn't load: {sanity.trouble}"
    bad = sanity.looping + sanity.empty
    if bad > MAX_BAD_SHARE * sanity.completions:
        return (
            f"{sanity.looping} of the candidate's {sanity.completions} completions repeat "
            f"themselves without end, and {sanity.empty} are empty"
        )
    return ""
