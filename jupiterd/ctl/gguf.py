"""Turning a Hugging Face folder into one GGUF file, by llama.cpp's own converter.

Owns finding the converter and running it. It isn't part of Jupiter: people install it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

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


def convert(converter: Path, folder: Path, to: Path) -> None:
    """Write the GGUF file of a model folder.

    Raises:
        WorkFailedError: the converter says why it can't.
    """
    program = (
        [str(converter)] if os.access(converter, os.X_OK) else [sys.executable, str(converter)]
    )
    command = [*program, str(folder), "--outfile", str(to), "--outtype", "auto"]
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
            "try a newer llama.cpp; --format hf writes what it reads",
        )


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return printable(lines[-1].strip())[:300] if lines else "it doesn't say why"
