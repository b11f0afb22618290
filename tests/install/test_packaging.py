"""What a release consists of, installed into an empty environment as pip and pipx do it."""

import json
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from jupiterd import __version__
from tests.install.machine import PROGRAMS
from tests.install.packages import PARTS, ROOT, Built, bare_surroundings, python_with

pytestmark = pytest.mark.timeout(300)

DATA = [
    str(file.relative_to(ROOT)) for file in sorted((ROOT / "config").rglob("*")) if file.is_file()
]


@pytest.mark.full
def test_wheel_and_sdist_carry_the_configuration_the_pins_and_the_licence(built: Built) -> None:
    wheel = zipfile.ZipFile(built.wheel)
    names = set(wheel.namelist())
    assert {f"jupiterd/{name}" for name in DATA} <= names
    assert wheel.read("jupiterd/constraints.txt") == (ROOT / "constraints.txt").read_bytes()
    for lock in (ROOT / "requirements").iterdir():
        assert wheel.read(f"jupiterd/requirements/{lock.name}") == lock.read_bytes()
    assert f"jupiterd-{__version__}.dist-info/licenses/LICENSE" in names
    assert "jupiter_tui/dashboard.tcss" in names
    page = ROOT / "jupiterd" / "daemon" / "serving" / "page"
    assert {str(file.relative_to(ROOT)) for file in page.iterdir()} <= names
    assert not [name for name in names if name.startswith("tests") or name.endswith(".pyc")]
    with tarfile.open(built.sdist) as sdist:
        members = {member.name: member for member in sdist.getmembers()}
    top = f"jupiterd-{__version__}"
    assert all(members[f"{top}/jupiterd/{name}"].isfile() for name in DATA)
    assert {f"{top}/LICENSE", f"{top}/README.md", f"{top}/pyproject.toml"} <= set(members)


@pytest.mark.full
def test_the_wheel_is_the_same_on_every_platform_and_has_every_module(built: Built) -> None:
    assert built.wheel.name == f"jupiterd-{__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(built.wheel).namelist())
    sources = (file for part in ("jupiterd", "jupiter_tui") for file in (ROOT / part).rglob("*.py"))
    assert {str(file.relative_to(ROOT)) for file in sources} <= names


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]


@pytest.mark.full
def test_both_run_from_an_empty_environment_in_an_empty_folder(
    built: Built, linked: Path, tmp_path: Path
) -> None:
    environment = bare_surroundings(tmp_path / "home")
    python = python_with(linked, tmp_path / "python3")
    _run([python, "-m", "venv", tmp_path / "environment"], tmp_path, environment)
    programs = tmp_path / "environment" / "bin"
    again = ("--force-reinstall", "--no-deps", "--no-compile")
    for package in (built.wheel, built.sdist):
        _run([programs / "pip", "install", *again, package], tmp_path, environment)
        (empty := tmp_path / f"empty-{package.suffix}").mkdir()
        _try(programs, empty, environment)


def _try(programs: Path, empty: Path, environment: dict[str, str]) -> None:
    """Run each program, and read from the configuration that came with them."""
    told = _run([programs / "jupiterd", "--version"], empty, environment)
    assert told == f"jupiterd, version {__version__}\n"
    for program in PROGRAMS:
        assert "Usage" in _run([programs / program, "--help"], empty, environment)
    listed = json.loads(
        _run([programs / "jupiterctl", "domain", "list", "-o", "json"], empty, environment)
    )
    assert {"python", "chemistry"} <= {domain["domain"] for domain in listed["domains"]}
    _run([programs / "jupiterctl", "domain", "new", "mine"], empty, environment)
    assert [file.name for file in empty.iterdir()] == ["mine.yaml"]
    where = "import jupiterd; print(jupiterd.__file__)"
    assert str(programs.parent) in _run([programs / "python", "-c", where], empty, environment)


def test_what_the_installer_copies_is_what_a_wheel_is_built_from() -> None:
    script = (ROOT / "installers" / "install.sh").read_text()
    assert f"for part in {' '.join(PARTS)}; do" in script


def _run(command: list[str | Path], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
