"""Which rules a machine grades and scores by, as a part of what its cache is asked for.

Owns an id of the source files that decide. A version alone would not do: between two releases, and
in a checkout, rules change under one number.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from blake3 import blake3

import jupiterd

GRADING: Final = (
    "cycle/questions/grading.py",
    "cycle/questions/question_file.py",
    "workers/answers/question_grading.py",
)
SCORING: Final = ("workers/evaluate/text_scorer.py", "workers/evaluate/windows.py")


@cache
def rules(files: Iterable[str]) -> str:
    """Return the version, with an id of these files; the version alone where they aren't there."""
    root = Path(jupiterd.__file__).parent
    digest = blake3()
    for name in files:
        file = root / name
        digest.update(file.read_bytes() if file.is_file() else b"")
    return f"{jupiterd.__version__} {digest.hexdigest(16)}"
