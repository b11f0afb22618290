"""Keeps a process that only needs a tokenizer from importing torch.

Owns that one setting of Python. transformers imports torch wherever it finds it, which takes 1.9 s
of processor time and 210 MB: most of what it takes to begin an engine of mlx-lm anew.
"""

import sys
from typing import cast


def without_torch() -> None:
    """Have torch count as not installed in this process, where transformers comes later."""
    cast("dict[str, object]", sys.modules)["torch"] = None
