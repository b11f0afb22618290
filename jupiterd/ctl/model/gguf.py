"""Turning a Hugging Face folder into one GGUF file: here, or by llama.cpp's own converter.

Owns which of the two does it, finding the converter and running it. The converter isn't part of
Jupiter: people install it. It runs where they name it, or where a model isn't known here.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupiterd.ctl.model import gguf_program
from jupiterd.ctl.model.gguf_file.write import write_gguf
from jupiterd.errors import (
    JupiterError,
    MissingExtraError,
    NotFoundError,
    UsageError,
    WorkFailedError,
)
from jupiterd.formats import printable

CONVERTER = "convert_hf_to_gguf.py"
GGUF_FILE = "model.gguf"
CONVERTING_S = 3600.0
HERE = "Jupiter"

_HINT = (
    "git clone https://github.com/ggml-org/llama.cpp && pip install -r llama.cpp/requirements.txt; "
    f"then name it: --converter llama.cpp/{CONVERTER}"
)


def named_converter(named: Path | None) -> Path | None:
    """Return the converter that is named; raises NotFoundError where there is no such file."""
    if named is None:
        return None
    if not named.is_file():
        raise NotFoundError(f"there is no file {named}", _HINT)
    return named.resolve()


def make_gguf(
    converter: Path | None, folder: Path, config: Mapping[str, Any], to: Path, name: str
) -> str:
    """Write the GGUF file of a model folder; return who has made it, in words.

    Args:
        converter: the one that people name; None: the one on PATH, if the model isn't known here.
        folder: of the model.
        config: its config.json.
        to: the file.
        name: what the model is called in it.

    Raises:
        MissingExtraError: the model isn't known here, and there is no converter.
        WorkFailedError: the converter says why it can't.
    """
    if converter is None:
        try:
            write_gguf(folder, config, to, name)
        except (UsageError, MissingExtraError) as error:
            converter = _on_path(error)
        else:
            return HERE
    convert(converter, folder, to, name)
    return f"llama.cpp's {CONVERTER}"


def _on_path(why: JupiterError) -> Path:
    """Return the converter on PATH, which does what can't be done here; `why` it can't."""
    if (found := shutil.which(CONVERTER)) is None:
        hint = why.hint if isinstance(why, MissingExtraError) else _HINT
        raise MissingExtraError(
            f"{why.message}, and llama.cpp's {CONVERTER} isn't on PATH", hint
        ) from why
    return Path(found)


def convert(converter: Path, folder: Path, to: Path, name: str) -> None:
    """Write the GGUF file of a model folder, in which the model is called so.

    Raises:
        WorkFailedError: the converter says why it can't.
    """
    program = [gguf_program.__file__] if _splits_like_gpt2(folder) else []
    arguments = [str(converter), str(folder), "--outfile", str(to), "--model-name", printable(name)]
    command = [_python_of(converter), *program, *arguments]
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
    """Return whether a tokenizer's text is split as GPT-2's is, as that of ours is."""
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
