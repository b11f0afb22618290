"""The answers of a launch's machines, and the check that they are enough alike.

Owns the comparison of the script's files, of versions and of environment variables. Doesn't know
how the answers were requested, or how the differences are shown.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jupiterd.errors import ConflictError
from jupiterd.formats import counted, plain
from jupiterd.processes.script_messages import MAX_HASHED_BYTES
from jupiterd.processes.script_plan import SET_HERE
from jupiterd.processes.scripts.variables import differences

if TYPE_CHECKING:
    from jupiterd.ctl.launch.launch_request import LaunchRequest

SHOWN_FILES: Final = 3
PYTHON: Final = "Python"


@dataclass(frozen=True)
class MachineAnswer:
    """One machine's answer."""

    name: str
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Python or framework -> version."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """The variables that are compared, with the values that its ranks get."""
    file_hashes: tuple[str, ...] = ()
    """Hashes of the requested files, in their order; empty for a missing file."""
    script_hash: str = ""
    """The hash of the file that is run."""

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "MachineAnswer":
        """Read one answer of `script.prepare`."""
        python = str(answer.get("python_version") or "")
        packages: Mapping[str, Any] = answer.get("packages") or {}
        return cls(
            name=str(answer["name"]),
            versions={
                **({PYTHON: python} if python else {}),
                **{str(name): str(version) for name, version in packages.items()},
            },
            variables={str(k): str(v) for k, v in (answer.get("variables") or {}).items()},
            file_hashes=tuple(map(str, answer.get("file_hashes") or ())),
            script_hash=str(answer.get("script_hash") or ""),
        )


def check_alike(wanted: "LaunchRequest", machines: Sequence[MachineAnswer]) -> None:
    """Check that all machines have the same script: ranks with different code may wait forever.

    Raises:
        ConflictError: a file of the script differs on a machine, or is missing.
    """
    if wanted.may_differ or wanted.travelling is not None:
        return
    own = [_hash(wanted.folder / name) for name in wanted.files]
    script = _hash(Path(wanted.program.script)) if wanted.program.script else ""
    for machine in machines:
        differing: list[str] = []
        if script and script != machine.script_hash:
            differing = [wanted.program.script]
        if len(machine.file_hashes) >= len(own):  # an older version sends no hashes
            pairs = zip(wanted.files, own, machine.file_hashes, strict=False)
            found = [name for name, here, there in pairs if here != there]
            differing = found or differing
        if differing:
            raise ConflictError(
                f"{_shown(differing)} on {machine.name}: missing, or not the same as here",
                "bring the folder along with --ship, or let them differ: --allow-differences",
            )


def nearby_differences(wanted: "LaunchRequest", machines: Sequence[MachineAnswer]) -> list[str]:
    """Return lines about files that may be loaded at run time and differ on other machines.

    Doesn't name missing files, because the script will fail without them, except files that the
    command itself names.
    """
    own = [_hash(wanted.folder / name) for name in wanted.nearby]
    named = {os.path.normpath(text) for each in wanted.argv for text in each.split("=", 1)}
    lines: list[str] = []
    for machine in machines:
        theirs = machine.file_hashes[len(wanted.files) :]
        if len(theirs) != len(own):
            continue
        differing = [
            name
            for name, here, there in zip(wanted.nearby, own, theirs, strict=True)
            if here != there and (there or name in named)
        ]
        if differing:
            lines.append(
                f"{_shown(differing)} on {plain(machine.name)}: not the same as here; no import "
                "names it, and the script may load it while it runs"
            )
    return lines


def _shown(files: Sequence[str]) -> str:
    shown, more = ", ".join(map(plain, files[:SHOWN_FILES])), len(files) - SHOWN_FILES
    return f"{shown} and {counted(more, 'more file')}" if more > 0 else shown


def version_differences(machines: Sequence[MachineAnswer]) -> list[str]:
    """Return lines about Python and frameworks whose versions differ between machines."""
    answered = [machine for machine in machines if machine.versions]
    names = dict.fromkeys(name for machine in answered for name in machine.versions)
    lines: list[str] = []
    for name in names:
        found: dict[str, list[str]] = {}
        for machine in answered:
            found.setdefault(machine.versions.get(name, "none"), []).append(machine.name)
        if len(found) > 1:
            each = (f"{plain(v)} on {' and '.join(map(plain, on))}" for v, on in found.items())
            lines.append(f"{plain(name)} differs: {', '.join(each)}")
    return lines


def variable_differences(wanted: "LaunchRequest", machines: Sequence[MachineAnswer]) -> list[str]:
    """Return lines about variables that differ between machines, and a hint."""
    if len(machines) < 2:
        return []
    set_alike = {*wanted.variables, *SET_HERE}
    lines = differences({machine.name: machine.variables for machine in machines}, set_alike)
    hint = ["--env NAME gives all processes what this shell has"] if lines else []
    return [*lines, *hint]


def _hash(path: Path) -> str:
    from blake3 import blake3

    try:
        with path.open("rb") as file:
            return blake3(file.read(MAX_HASHED_BYTES)).hexdigest()
    except OSError:  # deleted since it was listed, or not readable
        return ""
