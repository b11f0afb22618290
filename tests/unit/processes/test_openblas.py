"""How OpenBLAS gets onto a machine whose owner isn't root."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jupiterd.processes import openblas

LIBRARY = "libopenblas.so.0"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a Python environment on a machine without the library."""
    monkeypatch.setattr(openblas, "_FOLDERS", ())
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setattr(sys, "argv", ["openblas", "--without-root"])
    return tmp_path / "environment"


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="unpacks packages of Debian")
def test_it_is_unpacked_into_the_environment(
    environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    package = _package(tmp_path)
    _apt_that("cp", str(package), ".", folder=tmp_path, monkeypatch=monkeypatch)
    openblas.main()
    assert openblas.openblas() == str(environment / "lib" / "openblas" / LIBRARY)
    assert "unpacked OpenBLAS into" in capsys.readouterr().out
    openblas.main()
    assert capsys.readouterr().out == ""


def test_where_it_cannot_be_had_nothing_is_left_and_one_line_says_how_to_get_it(
    environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _apt_that("false", folder=tmp_path, monkeypatch=monkeypatch)
    openblas.main()
    assert not environment.exists()
    assert "hint: sudo apt-get install libopenblas0-pthread" in capsys.readouterr().out


def _apt_that(*command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an apt-get before the real one that does this instead of downloading."""
    program = folder / "bin" / "apt-get"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{' '.join(command)}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def _package(folder: Path) -> Path:
    """Build a package in the form of Debian's, with some library of this machine inside."""
    tree = folder / "tree"
    place = tree / "usr" / "lib" / f"{platform.machine()}-linux-gnu" / "openblas-pthread"
    place.mkdir(parents=True)
    shutil.copy(_some_library(), place / "libopenblasp.so")
    (place / LIBRARY).symlink_to("libopenblasp.so")
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN" / "control").write_text(
        "Package: libopenblas0-pthread\nVersion: 1\nArchitecture: all\nMaintainer: nobody\n"
        "Description: for a test\n"
    )
    package = folder / "libopenblas0-pthread_1_all.deb"
    subprocess.run(["dpkg-deb", "-Znone", "-b", tree, package], check=True, capture_output=True)
    return package


def _some_library() -> str:
    """Return the path of a library that this process has loaded."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return next(line.split()[-1] for line in lines if "/libm.so" in line or "/libm-" in line)
