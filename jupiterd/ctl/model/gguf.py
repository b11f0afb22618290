"""Converts a Hugging Face folder to one GGUF file, with Jupiter's code or llama.cpp's converter.

Owns the choice between the two, and finds and runs the converter. The converter isn't part of
Jupiter: users install it. It is used if the user names it, or if Jupiter doesn't know the model.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupiterd.ctl.model import gguf_program
from jupiterd.errors import (
    JupiterError,
    MissingExtraError,
    NotFoundError,
    UsageError,
    WorkFailedError,
)
from jupiterd.formats import printable
from jupiterd.gguf_file.write import write_gguf

CONVERTER = "convert_hf_to_gguf.py"
GGUF_FILE = "model.gguf"
CONVERTING_S = 3600.0
HERE = "Jupiter"

_HINT = (
    "git clone https://github.com/ggml-org/llama.cpp && pip install -r llama.cpp/requirements.txt; "
    f"then name it: --converter llama.cpp/{CONVERTER}"
)


def named_converter(named: Path | None) -> Path | None:
    """Return the full path of the named converter, if any; raise NotFoundError if it is no file."""
    if named is None:
        return None
    if not named.is_file():
        raise NotFoundError(f"there is no file {named}", _HINT)
    return named.resolve()


def make_gguf(
    converter: Path | None, folder: Path, config: Mapping[str, Any], to: Path, name: str
) -> str:
    """Write the GGUF file of a model folder; return the name of the program that wrote it.

    Args:
        converter: the one that the user names; None: Jupiter's own code, or the one on PATH if
        Jupiter doesn't know the model.
        folder: the model's folder.
        config: the content of its config.json.
        to: the file to write.
        name: the model's name in the file.

    Raises:
        CorruptArtifactError: a file of the folder can't be read.
        MissingExtraError: Jupiter can't write the model, and there is no converter.
        WorkFailedError: the converter failed; the message has its reason.
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
    """Return the converter on PATH; raise MissingExtraError, with the reason `why`, if it isn't."""
    if (found := shutil.which(CONVERTER)) is None:
        hint = why.hint if isinstance(why, MissingExtraError) else _HINT
        raise MissingExtraError(
            f"{why.message}, and llama.cpp's {CONVERTER} isn't on PATH", hint
        ) from why
    return Path(found)


def convert(converter: Path, folder: Path, to: Path, name: str) -> None:
    """Write the GGUF file of a model folder with llama.cpp's converter; name: of the model in it.

    Raises:
        WorkFailedError: the converter failed; the message has its reason.
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
    """Return the Python of the converter's first line (it has the dependencies), else ours."""
    try:
        with converter.open("rb") as file:
            first = file.readline(256).decode("utf-8", "replace")
    except OSError:
        first = ""
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    found = shutil.which(words[-1]) if words else None
    return found or sys.executable


def _splits_like_gpt2(folder: Path) -> bool:
    """Return whether a tokenizer splits text like GPT-2's, as Jupiter's own tokenizers do."""
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
