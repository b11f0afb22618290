"""Turning a Hugging Face folder into one GGUF file, by llama.cpp's own converter.

Owns finding the converter and running it. It isn't part of Jupiter: people install it.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from jupiterd.ctl import gguf_program
from jupiterd.errors import MissingExtraError, NotFoundError, WorkFailedError
from jupiterd.formats import printable

CONVERTER = "convert_hf_to_gguf.py"
GGUF_FILE = "model.gguf"
CONVERTING_S = 3600.0

_HINT = (
    "git clone https://github.com/ggml-org/llama.cpp, install its requirements.txt, and name the "
    f"file: --converter llama.cpp/{CONVERTER}"
)


def found_converter(named: Path | None) -> Path:
    """Return the converter: the one that is named, or the one on PATH.

    Raises:
        NotFoundError: there is no such file.
        MissingExtraError: none is named, and there is none on PATH.
    """
    if named is not None:
        if not named.is_file():
            raise NotFoundError(f"there is no file {named}", _HINT)
        return named.resolve()
    if (found := shutil.which(CONVERTER)) is None:
        raise MissingExtraError(f"GGUF needs llama.cpp's {CONVERTER}, which isn't on PATH", _HINT)
    return Path(found)


def convert(converter: Path, folder: Path, to: Path, name: str) -> None:
    """Write the GGUF file of a model folder, in which the model is called so.

    Raises:
        WorkFailedError: the converter says why it can't.
    """
    program = [gguf_program.__file__] if _splits_like_gpt2(folder) else []
    asked = [str(converter), str(folder), "--outfile", str(to), "--model-name", printable(name)]
    command = [_python_of(converter), *program, *asked]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CONVERTING_S, check=False
        )
        reason, has_failed = _last_line(done.stderr or done.stdout), done.returncode != 0
    except (OSError, subprocess.TimeoutExpired) as error:
        reason, has_failed = str(error), True
    if has_failed or not to.is_file():
        raise WorkFailedError(
            f"{converter.name} made no GGUF file: {reason}",
            "install what its requirements.txt names, or try a newer llama.cpp",
        )


def _python_of(converter: Path) -> str:
    """Return the Python that the converter's first line names: it has what the converter needs."""
    try:
        with converter.open("rb") as file:
            first = file.readline(256).decode("utf-8", "replace")
    except OSError:
        first = ""
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    found = shutil.which(words[-1]) if words else None
    return found or sys.executable


def _splits_like_gpt2(folder: Path) -> bool:
    """Say whether a tokenizer's text is split as GPT-2's is, as that of ours is."""
    try:
        said: Any = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        split: Any = said["pre_tokenizer"] or {}
        is_plain = split.get("use_regex", True) and not split.get("add_prefix_space")
        return split.get("type") == "ByteLevel" and is_plain and not said.get("normalizer")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return printable(lines[-1].strip())[:300] if lines else "it doesn't say why"
