"""The tokenizer of a model folder that comes in: in the form that is read here, and whose it is.

Owns having an older form converted, in a worker process of this machine, and reading what tells one
tokenizer from another. Doesn't know what is compared with it.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from jupiterd.cycle.base.model_files import WITH_TOKENIZER, has_tokenizer, is_older_tokenizer
from jupiterd.cycle.data.tokenizer_identity import IDENTITY_FILES, TokenizerIdentity, identity_of
from jupiterd.errors import BrokenModelError, WorkFailedError, from_wire
from jupiterd.processes.environment import worker_environment

MODULE: Final = "jupiterd.workers.tokens.conversion"
CONVERTING_S: Final = 120.0


def converted(folder: Path) -> None:
    """Give a folder's tokenizer the form that is read here, unless it has it, or there is none.

    Raises:
        JupiterError: it can't be converted.
    """
    if not is_older_tokenizer({path.name for path in folder.iterdir()}):
        return
    try:
        done = subprocess.run(
            [sys.executable, "-m", MODULE, str(folder)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CONVERTING_S,
            check=False,
            env=worker_environment("convert_tokenizer", {}),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WorkFailedError(f"the tokenizer can't be converted: {error}") from error
    if done.returncode:
        raise _failure(done)


def brought_tokenizer(folder: Path) -> TokenizerIdentity | None:
    """Return whose tokenizer a folder holds, without changing it; None: it has none.

    Raises:
        BrokenModelError: a file of it isn't what it should be.
        JupiterError: it is of an older form, and can't be converted.
    """
    names = {path.name for path in folder.iterdir()}
    if not has_tokenizer(names):
        return None
    if not is_older_tokenizer(names):
        return read_identity(folder)
    with tempfile.TemporaryDirectory(prefix="jupiter-tokenizer-") as scratch:
        copied = Path(scratch) / folder.name
        copied.mkdir()
        for name in names.intersection(WITH_TOKENIZER):
            shutil.copyfile(folder / name, copied / name)
        converted(copied)
        return read_identity(copied)


def check_convertible(folder: Path) -> None:
    """Raise JupiterError where a folder's tokenizer is of an older form and can't be converted."""
    if is_older_tokenizer({path.name for path in folder.iterdir()}):
        brought_tokenizer(folder)


def read_identity(folder: Path) -> TokenizerIdentity:
    """Return whose tokenizer lies there; raises BrokenModelError where it can't be read."""
    try:
        found = [name for name in IDENTITY_FILES if (folder / name).is_file()]
        return identity_of({name: (folder / name).read_text(encoding="utf-8") for name in found})
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise BrokenModelError(
            f"the tokenizer can't be read: {why}",
            "fetch the model again: a file of it is missing or cut off",
        ) from error


def _failure(done: "subprocess.CompletedProcess[str]") -> Exception:
    """Return what the process says went wrong: its last line is its answer."""
    try:
        said: Any = json.loads(done.stdout.strip().rpartition("\n")[2])
        return from_wire(said["code"], said["error"], said["hint"])
    except (ValueError, KeyError, TypeError):
        last = done.stderr.strip().rpartition("\n")[2]
        return WorkFailedError(f"the tokenizer can't be converted: {last}")
