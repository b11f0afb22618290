"""Write constraints.txt: the exact version of everything that `make setup` installs.

Resolves pyproject.toml afresh in an environment that is thrown away. Knows no package by name.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "constraints.txt"
EXTRAS = "cpu,dev"

HEADER = f"""\
# The exact version of everything that `make setup` installs: pip install -c constraints.txt ...
# Resolved on Linux with the extras {EXTRAS}; written by: make constraints
"""


def pins(frozen: str) -> list[str]:
    """Return the lines `name==version` of a `pip freeze`, sorted, without our own package.

    A local version such as +cpu is cut off: which build is taken is the index's business.
    """
    found = [line.partition("+")[0] for line in frozen.splitlines() if "==" in line]
    return sorted((line for line in found if not line.startswith(("#", "-e"))), key=str.lower)


def resolve() -> str:
    """Install everything into a fresh environment; return what `pip freeze` says then."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", f"{ROOT}[{EXTRAS}]"], check=True)
        freeze = [*pip, "freeze", "--exclude", "jupiterd"]
        return subprocess.run(freeze, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Write the file."""
    if not sys.platform.startswith("linux"):
        sys.exit("the pins are made on Linux, where both engines can be installed")
    lines = pins(resolve())
    TARGET.write_text(HEADER + "\n".join(lines) + "\n")
    print(f"{TARGET.name}: {len(lines)} pins")


if __name__ == "__main__":
    main()
