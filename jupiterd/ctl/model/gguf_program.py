"""A program: llama.cpp's converter, told how text is split before our tokenizers merge bytes.

    python gguf_program.py convert_hf_to_gguf.py MODEL_FOLDER --outfile FILE ...

The converter knows tokenizers by the hash of what they make of one text, and refuses any that was
trained elsewhere. Ours split text as GPT-2's does, for which it has a name. Whichever class of the
converter, in whichever of its files, is asked for that name, answers with it where it would refuse.

It runs with the converter's own Python, so it needs nothing but the standard library.
"""

import builtins
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ASKED = "get_vocab_base_pre"
"""The converter's method that names a splitting."""

LIKE_GPT2 = "gpt-2"

_build_class = builtins.__build_class__


def main() -> None:
    """Run the converter that the first argument names with the arguments after it."""
    converter, *arguments = sys.argv[1:]
    builtins.__build_class__ = _built
    sys.argv = [converter, *arguments]
    sys.path.insert(0, str(Path(converter).resolve().parent))
    runpy.run_path(converter, run_name="__main__")


def _built(*parts: Any, **keywords: Any) -> type:
    """Make a class as Python does, and let it know our tokenizers if it is one that is asked."""
    made: type = _build_class(*parts, **keywords)
    if ASKED in vars(made):
        setattr(made, ASKED, _knowing(vars(made)[ASKED]))
    return made


def _knowing(asked: Callable[..., str]) -> Callable[..., str]:
    def named(*given: Any) -> str:
        try:
            return asked(*given)
        except NotImplementedError:
            return LIKE_GPT2

    return named


if __name__ == "__main__":
    main()
