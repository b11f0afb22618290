"""Files that a program may load while it runs, although none of its imports names them.

Owns finding them below its folder: files that the command line names (such as settings), and Python
files that git doesn't ignore (such as plugins). Doesn't read them, or know what they are used for.
The search is bounded in time and number, because the folder may hold much else, such as a home
folder.
"""

import os
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from jupiterd.ctl.launch.working_folder import files_without_git

MAX_FILES: Final = 1000
MAX_COMPARED: Final = 2000
"""The highest number of files that a machine compares for one launch, imported ones included."""
MAX_CHARACTERS: Final = 1 << 17
"""The highest number of characters in all names together."""
MAX_SEEN: Final = 20_000
GIT_TIMEOUT_S: Final = 3.0
WALK_S: Final = 0.5

_LIST: Final = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.py")


def nearby_files(folder: Path, argv: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Return these files relative to the folder: first those of the command, then the least nested.

    known: imported files, which are compared anyway
    """
    names = dict.fromkeys([*_named(folder, argv), *sorted(_python_files(folder), key=_nearest)])
    found, left = list[str](), MAX_CHARACTERS
    most = min(MAX_FILES, MAX_COMPARED - len(known))
    for name in names:
        left -= len(name)
        if left < 0 or len(found) >= most:
            break
        if name not in known and _is_text(name) and (folder / name).is_file():
            found.append(name)
    return tuple(found)


def _named(folder: Path, argv: Sequence[str]) -> Iterator[str]:
    """Yield the files below the folder that a command line names, also after a `=`."""
    for argument in argv[1:]:
        for text in (argument, argument.partition("=")[2]):
            path = Path(os.path.normpath(folder / text)) if text and "\0" not in text else folder
            if path.is_relative_to(folder) and path.is_file():
                yield path.relative_to(folder).as_posix()


def _python_files(folder: Path) -> list[str]:
    try:
        said = subprocess.run(
            _LIST, cwd=folder, capture_output=True, timeout=GIT_TIMEOUT_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return [*_walked(folder)]
    return [os.fsdecode(name) for name in islice(filter(None, said.split(b"\0")), MAX_SEEN)]


def _walked(folder: Path) -> Iterator[str]:
    """Yield the Python files of a folder without git, as many as are found within WALK_S."""
    begun_s = time.monotonic()
    for name in islice(files_without_git(folder), MAX_SEEN):
        if name.endswith(".py"):
            yield name
        if time.monotonic() - begun_s > WALK_S:
            return


def _nearest(name: str) -> tuple[int, str]:
    return len(PurePosixPath(name).parts), name


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
