"""Jupiter's wheel and sdist, and Pythons that others' packages needn't be installed into.

Owns building the two as a release does, and environments with links to the packages of the one that
runs the tests. Doesn't know the installer.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = (
    "jupiterd",
    "jupiter_tui",
    "config",
    "constraints.txt",
    "requirements",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
OURS = ("jupiterd", "jupiter_tui", "__editable__", "__pycache__", "pip", "distutils-precedence")
LINKS = "links-of-a-test.pth"


@dataclass(frozen=True)
class Built:
    """What a release consists of."""

    wheel: Path
    sdist: Path


def build(folder: Path, target: Path | None = None) -> Built:
    """Build the sdist from a copy of the checkout, and the wheel from the sdist, into `target`."""
    source = checkout(folder / "source")
    target = target or folder / "dist"
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", target, source]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = target.glob("*.whl")
    (sdist,) = target.glob("*.tar.gz")
    return Built(wheel, sdist)


def checkout(folder: Path) -> Path:
    """Copy what a checkout needs to be installed from; return the copy."""
    folder.mkdir()
    unwanted = shutil.ignore_patterns("__pycache__")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, symlinks=True, ignore=unwanted)
        else:
            shutil.copy(source, folder)
    (folder / "installers").mkdir()
    shutil.copy(ROOT / "installers" / "install.sh", folder / "installers")
    return folder


def links(folder: Path) -> Path:
    """Fill `folder` with links to every package that is installed here, except Jupiter and pip."""
    folder.mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith(OURS):
            (folder / package.name).symlink_to(package)
    return folder


def site_packages(environment: Path) -> Path:
    """Return where the packages of a virtual environment of this Python lie."""
    return environment / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)


def python_with(linked: Path, program: Path) -> Path:
    """Write a Python whose virtual environments know the packages in `linked`, as if installed.

    pip takes them for there, and for somebody else's: it never removes what is outside.
    """
    real = Path(sys.base_prefix) / "bin" / f"python{sysconfig.get_python_version()}"
    inside = site_packages(Path("$3"))
    program.write_text(
        f"""#!/bin/sh
"{real}" "$@" || exit $?
if [ "$1 $2" = "-m venv" ]; then
  rm -rf "{inside}"/setuptools*  # Python 3.11 brings an old one
  echo "{linked}" > "{inside}/{LINKS}"
fi
"""
    )
    program.chmod(0o755)
    return program


def bare_surroundings(home: Path, path: str = "/usr/bin:/bin") -> dict[str, str]:
    """Return the environment of a new user: a home folder, a path, and no index to be reached."""
    home.mkdir(exist_ok=True)
    return {
        "HOME": str(home),
        "PATH": path,
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip's word for: no isolation
    }
