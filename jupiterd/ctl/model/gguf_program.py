"""A program: llama.cpp's converter, extended by the splitting rule of our tokenizers.

    python gguf_program.py convert_hf_to_gguf.py MODEL_FOLDER --outfile FILE ...

The converter recognises a tokenizer by a hash of its tokens for a fixed text, and refuses
tokenizers that it doesn't know. Ours split text as GPT-2's does before merging bytes. This program
changes each class of the converter that names a splitting rule: it returns GPT-2's name instead of
refusing.

It runs with the converter's own Python, so it needs nothing but the standard library.
"""

import builtins
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SPLITTING_METHOD = "get_vocab_base_pre"
"""The converter's method that names a splitting rule."""

LIKE_GPT2 = "gpt-2"

_build_class = builtins.__build_class__


def main() -> None:
    """Run the converter that the first argument names, with the further arguments."""
    converter, *arguments = sys.argv[1:]
    builtins.__build_class__ = _built
    sys.argv = [converter, *arguments]
    sys.path.insert(0, str(Path(converter).resolve().parent))
    runpy.run_path(converter, run_name="__main__")


def _built(*parts: Any, **keywords: Any) -> type:
    """Build a class as Python does, and wrap its SPLITTING_METHOD if it has one."""
    built: type = _build_class(*parts, **keywords)
    if SPLITTING_METHOD in vars(built):
        setattr(built, SPLITTING_METHOD, _knowing(vars(built)[SPLITTING_METHOD]))
    return built


def _knowing(original: Callable[..., str]) -> Callable[..., str]:
    def named(*given: Any) -> str:
        try:
            return original(*given)
        except NotImplementedError:
            return LIKE_GPT2

    return named


if __name__ == "__main__":
    main()
