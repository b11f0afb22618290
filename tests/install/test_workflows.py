"""What GitHub is told to run: sound files that call nothing but targets that there are."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.install.packages import ROOT

FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))


def read(file: Path) -> dict[str, Any]:
    return YAML(typ="safe").load(file)


def commands() -> list[str]:
    jobs = [job for file in FILES for job in read(file)["jobs"].values()]
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_checker_of_yaml_finds_nothing(file: Path) -> None:
    command = [Path(sys.executable).parent / "yamllint", "--strict", file]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_job_ends_in_time_and_may_only_read_unless_it_publishes(file: Path) -> None:
    workflow = read(file)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["runs-on"]
        assert "timeout-minutes" in job or name == "publish"
        assert "permissions" not in job or name == "publish"


def test_every_step_calls_a_target_of_make_or_a_program_in_the_repository() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {name for line in commands() for name in re.findall(r"\bmake ([a-z-]+)", line)}
    assert {"check", "test", "install-check", "release-check"} <= called
    assert called <= targets
    for line in commands():
        assert line.startswith(("make ", ".ci/run", "sudo apt-get ", "apt-get ", "git config "))
    assert (ROOT / ".ci" / "run").is_file()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_action_is_pinned_by_its_commit_and_says_its_version(file: Path) -> None:
    used = re.findall(r"uses: (.*)", file.read_text())
    loose = [each for each in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v[\d.]+", each)]
    assert (bool(used), loose) == (True, [])


def test_where_upgrades_are_tried_earlier_commits_are_there() -> None:
    for name, job in read(FOLDER / "test.yml")["jobs"].items():
        [fetched] = [s for s in job["steps"] if s.get("uses", "").startswith("actions/checkout")]
        assert name == "mac" or fetched["with"]["fetch-depth"] == 0, name


def test_it_is_tried_on_linux_with_and_without_root_and_on_a_mac() -> None:
    jobs = read(FOLDER / "test.yml")["jobs"]
    systems = {name: job["runs-on"].partition("-")[0] for name, job in jobs.items()}
    assert systems == {"linux": "ubuntu", "linux-root": "ubuntu", "mac": "macos"}
    assert "--privileged" in jobs["linux-root"]["container"]["options"]
