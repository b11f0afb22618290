"""What `make release-check` and `make audit` say, and that the page of licences is current."""

import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.install.packages import ROOT

SCRIPTS = ROOT / "scripts"
CHANGELOG = "# Changelog\n\n## 1.2.3 - 2026-11-23\n\n## 1.2.2 - 2026-11-01\n"


@pytest.fixture
def audit() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPTS / "audit.py"))


@pytest.fixture
def needs_word() -> Callable[[str, str], bool]:
    return runpy.run_path(str(SCRIPTS / "licences.py"))["needs_word"]


@pytest.mark.skipif(sys.platform != "linux", reason="the page is written on Linux")
def test_the_page_of_licences_is_current_and_each_that_asks_for_more_is_explained() -> None:
    command = [sys.executable, SCRIPTS / "licences.py", "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("licence", "needs"),
    [
        ("MIT", False),
        ("Apache-2.0 OR GPL-3.0-only", False),
        ("BSD-3-Clause AND MIT", False),
        ("MIT AND GPL-3.0-only", True),
        ("AGPL-3.0-or-later", True),
        ("unknown", True),
    ],
)
def test_a_licence_that_asks_for_more_needs_a_word(
    needs_word: Callable[[str, str], bool], licence: str, needs: bool
) -> None:
    assert needs_word("surprise", licence) is needs
    assert not needs_word("zeroconf", licence)


@pytest.mark.parametrize(
    ("version", "tag", "told"),
    [
        ("1.2.3", "", None),
        ("1.2.3", "v1.2.3", None),
        ("1.2.3", "v1.2.2", "the tag is v1.2.2, and the code says 1.2.3"),
        ("1.2", "", "1.2 is no version of the form 1.2.3 or 1.2.3rc1"),
        ("1.3.0", "v1.3.0", "CHANGELOG.md has no section 1.3.0"),
    ],
)
def test_only_a_version_that_is_written_down_is_released(
    version: str, tag: str, told: str | None
) -> None:
    complaint = runpy.run_path(str(SCRIPTS / "release_version.py"))["complaint"]
    wrong = complaint(version, tag, CHANGELOG)
    assert (wrong and wrong[0]) == told


def test_an_audit_is_clean_when_every_package_was_looked_up_and_nothing_found(audit) -> None:
    assert audit["judged"]([_package("click"), _package("torch")]) == (
        0,
        ["2 of 2 packages were looked up"],
    )


def test_a_vulnerability_fails_the_audit_until_it_is_explained(audit) -> None:
    finding = {"id": "PYSEC-1", "aliases": ["CVE-2026-1"], "fix_versions": ["2.0"]}
    packages = [_package("click", vulns=[finding])]
    status, lines = audit["judged"](packages)
    assert status == 1
    assert lines[0] == "click 1.0: PYSEC-1: not explained; mended in 2.0"
    audit["judged"].__globals__["EXPLAINED"] = {"CVE-2026-1": "we never call it", "CVE-2020-1": ""}
    status, lines = audit["judged"](packages)
    assert status == 0
    assert lines[0] == "click 1.0: PYSEC-1: we never call it"
    assert lines[-1] == "CVE-2020-1 is explained, and no longer found"


def test_packages_that_were_not_looked_up_are_not_taken_for_sound(audit) -> None:
    status, lines = audit["judged"]([_package("click"), _package("mine", skip_reason="unknown")])
    assert status == 1
    assert lines == ["1 of 2 packages were looked up", "not known to the index: mine"]


def _package(name: str, **told: Any) -> Mapping[str, Any]:
    return {"name": name, "version": "1.0", **told}
