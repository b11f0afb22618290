"""What a command line runs: a file of Python, a module of Python by its name, or something else.

Owns reading the command. Doesn't know what is in the file (`local_imports`), nor which Python it is
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
"""Options of Python that take a value, which may stand behind a space."""

_LAUNCHERS: Final = frozenset(
    {"torchrun", "deepspeed", "horovodrun", "mlx.launch", "mpiexec", "mpirun"}
)
_LAUNCHER_MODULES: Final = frozenset({"torch.distributed.launch", "torch.distributed.run"})
"""What replaces the ranks that it is given by its own; `accelerate launch` takes them up."""

_MEETING: Final = frozenset({"--rdzv-backend", "--rdzv-endpoint"})
"""By both, the same command of torchrun on several machines gets a number on each."""


@dataclass(frozen=True)
class CommandLine:
    """A command line, as far as it is understood."""

    argv: tuple[str, ...]
    script: str = ""
    """The file that is run, as an absolute path; empty where it isn't known."""
    module: str = ""
    """What follows `-m`."""
    is_alone: bool = False
    """A script was named without any Python."""

    @property
    def is_python(self) -> bool:
        """Return whether a Python is what is started, and not a program that finds its own."""
        return is_python(self.argv[0])

    @property
    def launcher(self) -> str:
        """Return what starts ranks of its own, where that is what would be run; else nothing."""
        name = Path(self.argv[0]).name
        if name in _LAUNCHERS:
            return name
        return self.module if self.module in _LAUNCHER_MODULES else ""

    @property
    def _has_meeting_place(self) -> bool:
        """Say whether torchrun gets a rendezvous; options after a script are the script's own."""
        own = takewhile(lambda argument: not argument.endswith(".py"), self.argv)
        options = {each.partition("=")[0].replace("_", "-") for each in own}
        is_torch = self.launcher == "torchrun" or self.launcher in _LAUNCHER_MODULES
        return is_torch and options >= _MEETING and "--standalone" not in options

    def check_ranks(self, ranks: int) -> None:
        """Refuse to run another launcher several times: each would train by itself, alone.

        Raises:
            UsageError: it is one without a rendezvous, and there is more than one rank.
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
        """Return whether it is left open which Python that is."""
        return self.is_python and "/" not in self.argv[0]


def read_program(argv: Sequence[str], folder: Path) -> CommandLine:
    """Return what a command runs in a folder; a script that is named alone is run by `python`.

    Raises:
        UsageError: the script that it names isn't there.
    """
    is_alone = argv[0].endswith(".py")
    argv = ("python", *argv) if is_alone else tuple(argv)
    module = module_of(argv) if is_python(argv[0]) else ""
    return CommandLine(argv, script_of(argv, folder), module, is_alone)


def script_of(argv: Sequence[str], folder: Path) -> str:
    """Return the first argument that is a Python file here, as an absolute path."""
    for argument in argv:
        path = folder / argument
        if argument.endswith(".py") and path.is_file():
            return os.path.normpath(path)
    if named := next((argument for argument in argv[1:2] if argument.endswith(".py")), None):
        raise UsageError(f"there is no script {named} here", f"this is {folder}")
    return ""


def module_of(argv: Sequence[str]) -> str:
    """Return what follows `-m` among the options of Python; empty where there is none."""
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
