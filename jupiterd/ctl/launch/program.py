"""What a command line runs: a Python file, a Python module by its name, or another program.

Owns parsing the command. Doesn't read the file (`local_imports`), or choose the Python
(`interpreter`).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Final

from jupiterd.errors import UsageError
from jupiterd.processes.scripts.python_probe import is_python

_WITH_VALUE: Final = frozenset("WX")
"""Options of Python with a value, which may follow after a space."""

_LAUNCHERS: Final = frozenset(
    {"torchrun", "deepspeed", "horovodrun", "mlx.launch", "mpiexec", "mpirun"}
)
_LAUNCHER_MODULES: Final = frozenset({"torch.distributed.launch", "torch.distributed.run"})
"""Modules that start their own ranks and ignore given ones; `accelerate launch` uses given ones."""

_MEETING: Final = frozenset({"--rdzv-backend", "--rdzv-endpoint"})
"""With both options, torchrun itself numbers the machines that run the same command."""


@dataclass(frozen=True)
class CommandLine:
    """A parsed command line."""

    argv: tuple[str, ...]
    script: str = ""
    """The file that is run, as an absolute path; empty: unknown."""
    module: str = ""
    """The module after `-m`; empty: none."""
    is_alone: bool = False
    """The command names a script without a Python."""

    @property
    def is_python(self) -> bool:
        """Return whether the command starts a Python directly."""
        return is_python(self.argv[0])

    @property
    def launcher(self) -> str:
        """Return the name of the launcher, such as torchrun, that the command runs; empty: none."""
        name = Path(self.argv[0]).name
        if name in _LAUNCHERS:
            return name
        return self.module if self.module in _LAUNCHER_MODULES else ""

    @property
    def _has_meeting_place(self) -> bool:
        """Return whether torchrun gets a rendezvous; options after a script belong to it."""
        own = takewhile(lambda argument: not argument.endswith(".py"), self.argv)
        options = {each.partition("=")[0].replace("_", "-") for each in own}
        is_torch = self.launcher == "torchrun" or self.launcher in _LAUNCHER_MODULES
        return is_torch and options >= _MEETING and "--standalone" not in options

    def check_ranks(self, ranks: int) -> None:
        """Refuse several ranks of another launcher: each would train on its own.

        Raises:
            UsageError: the command is a launcher without a rendezvous, and there are several ranks.
        """
        if ranks > 1 and self.launcher and not self._has_meeting_place:
            raise UsageError(
                f"{self.launcher} starts ranks of its own, and {ranks} of it would know nothing of "
                "each other",
                "jupiterctl launch takes its place: jupiterctl launch --per-node 2 -- python "
                "SCRIPT, with what follows the script",
            )

    @property
    def is_bare(self) -> bool:
        """Return whether the command names a Python without a path."""
        return self.is_python and "/" not in self.argv[0]


def read_program(argv: Sequence[str], folder: Path) -> CommandLine:
    """Return what a command runs in a folder; `python` runs a script that is named alone.

    Raises:
        UsageError: the folder has no such script.
    """
    is_alone = argv[0].endswith(".py")
    argv = ("python", *argv) if is_alone else tuple(argv)
    module = module_of(argv) if is_python(argv[0]) else ""
    return CommandLine(argv, script_of(argv, folder), module, is_alone)


def script_of(argv: Sequence[str], folder: Path) -> str:
    """Return the first argument that is a Python file, as an absolute path; empty: none."""
    for argument in argv:
        path = folder / argument
        if argument.endswith(".py") and path.is_file():
            return os.path.normpath(path)
    if named := next((argument for argument in argv[1:2] if argument.endswith(".py")), None):
        raise UsageError(f"there is no script {named} here", f"this is {folder}")
    return ""


def module_of(argv: Sequence[str]) -> str:
    """Return the module after `-m` in Python's options; empty: none."""
    rest = iter(argv[1:])
    for argument in rest:
        if not argument.startswith("-") or argument == "-":
            return ""
        for number, letter in enumerate(argument[1:], 2):
            if letter in {"m", "c"}:
                return "" if letter == "c" else argument[number:] or next(rest, "")
            if letter in _WITH_VALUE:
                _ = argument[number:] or next(rest, "")
                break
            if letter == "-":  # a long option
                break
    return ""
