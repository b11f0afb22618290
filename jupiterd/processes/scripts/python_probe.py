"""What a Python is that is to run somebody's script: its version, and that of its frameworks.

Owns asking it, as a process of its own; nothing is imported there. Doesn't know who wants to know.
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
    """A Python, as it describes itself."""

    version: str
    """Empty where it doesn't say."""
    packages: Mapping[str, str] = field(default_factory=dict[str, str])
    """Framework -> its version, where it is installed."""


def python_version(program: str) -> PythonVersion:
    """Ask a Python what it is; nothing where it doesn't answer. Takes some 50 ms."""
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
    """Say whether a program is a Python, by its name."""
    return Path(program).name.startswith("python")
