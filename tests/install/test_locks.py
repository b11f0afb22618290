"""The locks of the installer: every package at its pinned version, by its hashes, and no torch."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.install.packages import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
BLOCK = re.compile(
    r"^([a-z0-9-]+)==([^ ;]+)( ; [^\\\n]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
    re.MULTILINE,
)


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in found}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_package_has_its_pinned_version_and_hashes(lock: Path) -> None:
    text = lock.read_text()
    left = [line for line in BLOCK.sub("", text).splitlines() if line and not line.startswith("#")]
    assert left == []
    blocks = {name: version for name, version, _, _ in BLOCK.findall(text)}
    assert len(blocks) > 50
    known = pins()
    assert {n: v for n, v in blocks.items() if known.get(n, v) != v} == {}
    assert not blocks.keys() & {"torch", "triton", "setuptools"}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_nothing_that_the_extra_asks_for_is_missing(lock: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"].get(lock.stem, [])]
    wanted = {canonicalize_name(Requirement(each).name) for each in asked} - {"torch"}
    assert wanted <= {name for name, *_ in BLOCK.findall(lock.read_text())}


def test_there_is_a_lock_for_every_extra_of_the_installer() -> None:
    assert [lock.stem for lock in LOCKS] == ["cpu", "mac", "none", "nvidia"]


def test_torch_may_be_any_version_that_was_run_and_one_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [Requirement(each) for extra in ("cpu", "mac", "nvidia")
             for each in project["optional-dependencies"][extra]]  # fmt: skip
    ranges = {str(each.specifier) for each in asked if each.name == "torch"}
    assert ranges == {"<3,>=2.11"}
    assert SpecifierSet(ranges.pop()).contains(pins()["torch"])


def test_new_pins_keep_the_torch_that_is_pinned() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "pin_constraints.py"))
    text = (ROOT / "constraints.txt").read_text()
    assert script["chosen_torch"](text) == f"torch=={pins()['torch']}"
    with pytest.raises(SystemExit, match="pins no torch"):
        script["chosen_torch"]("torchvision==1.0\n")
