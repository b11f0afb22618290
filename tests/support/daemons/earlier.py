"""Jupiter as it was at an earlier commit, or with another version number: built, and installed.

Owns the wheel and an environment for it, which takes all other packages from the one that runs the
tests. Doesn't know what anybody does with it.
"""

import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
VERSION_LINES = {"pyproject.toml": r'(?m)^version = "(.+)"', "jupiterd/__init__.py": r'= "(.+)"'}


@dataclass(frozen=True)
class Installed:
    """A Jupiter in an environment of its own."""

    folder: Path

    @property
    def command(self) -> Sequence[str | Path]:
        """What starts its daemon."""
        return (self.folder / "bin" / "jupiterd",)


def commit_before() -> str:
    """Return the commit before the newest one; that itself where no more of history is here.

    Empty where this is no checkout.
    """
    return _commit("HEAD~1") or _commit("HEAD")


def last_commit_without(path: str) -> str:
    """Return the commit before the one that brought a file; empty where history doesn't say."""
    added = _git("log", "--diff-filter=A", "--format=%H", "--", path).split()
    return _commit(f"{added[-1]}~1") if added else ""


def installed(folder: Path, commit: str, version: str = "") -> Installed:
    """Build a wheel of a commit, with another version number where one is given, and install it."""
    source = folder / "source"
    packed = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(source, filter="data")
    if version:
        _renumber(source, version)
    return _install(folder, _wheel(source, folder / "wheels"))


def _renumber(source: Path, version: str) -> None:
    found = 0
    for name, form in VERSION_LINES.items():
        path = source / name
        text = path.read_text()
        for match in re.finditer(form, text):
            text = text.replace(match[0], match[0].replace(match[1], version))
            found += 1
        path.write_text(text)
    assert found, f"no version number was found in {list(VERSION_LINES)}"


def _wheel(source: Path, folder: Path) -> Path:
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _install(folder: Path, wheel: Path) -> Installed:
    home = folder / "installed"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    ours = Path(sysconfig.get_path("purelib"))
    # A folder that a .pth file names has none of its own .pth files read: our checkout stays out.
    (home / ours.relative_to(sys.prefix) / "others.pth").write_text(f"{ours}\n")
    python = home / "bin" / "python"
    options = ("--no-deps", "--no-index", "--no-compile", "--ignore-installed")
    _pip("--python", python, "install", *options, wheel)
    return Installed(home)


def _pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _commit(name: str) -> str:
    return _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""
