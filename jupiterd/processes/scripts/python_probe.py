"""Finds the versions of a Python and of its frameworks before it runs a user's script.

Owns the question, which it asks in a process of its own without importing the frameworks. Doesn't
know who needs the answer.
"""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

TIMEOUT_S: Final = 10.0
MAX_CHARACTERS: Final = 64
FRAMEWORKS: Final = ("torch", "mlx")

_ASK: Final = f"""
import json, sys
from importlib import metadata
found = {{}}
for name in {FRAMEWORKS!r}:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps({{"version": sys.version.split()[0], "packages": found}}))
"""


@dataclass(frozen=True)
class PythonVersion:
    """The versions that a Python reports."""

    version: str
    """Empty if it doesn't answer."""
    packages: Mapping[str, str] = field(default_factory=dict[str, str])
    """Framework -> its version, if it is installed."""


def python_version(program: str) -> PythonVersion:
    """Ask a Python for its versions; empty if it doesn't answer. Takes about 50 ms."""
    try:
        said = subprocess.run(
            [program, "-c", _ASK], capture_output=True, timeout=TIMEOUT_S, check=True, cwd="/"
        ).stdout
        answer: Mapping[str, Any] = json.loads(said)
        found = answer["packages"]
        packages = {name: str(found[name]) for name in FRAMEWORKS if name in found}
    except (OSError, subprocess.SubprocessError, ValueError, TypeError, KeyError):
        return PythonVersion("")
    shown = {name: version[:MAX_CHARACTERS] for name, version in packages.items()}
    return PythonVersion(str(answer["version"])[:MAX_CHARACTERS], shown)


def is_python(program: str) -> bool:
    """Return whether a program is a Python, judging by its name."""
    return Path(program).name.startswith("python")
