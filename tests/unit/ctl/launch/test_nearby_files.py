"""Files that a program may load while it runs: which are found, and what is said of them."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jupiterd.ctl.launch.launch_request import LaunchRequest, read_request
from jupiterd.ctl.launch.machines import MachineAnswer, check_alike, nearby_differences
from jupiterd.ctl.launch.nearby_files import MAX_FILES, nearby_files
from jupiterd.daemon.scripts.readiness import file_hashes
from tests.unit.ctl.launch.test_launch_request import OPTIONS

SCRIPT = "import importlib, sys\nimportlib.import_module(f'plugins.{sys.argv[2]}').run()\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a program that loads a plugin by its name, and reads what its command names."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "train.py").write_text(SCRIPT)
    for name in ("plugins/fast.py", "plugins/slow.py", "run.yaml", "notes.txt", "made.py"):
        (tmp_path / name).write_text(name)
    (tmp_path / ".gitignore").write_text("made.py\n")
    return tmp_path


def wanted(folder: Path, **options: Any) -> LaunchRequest:
    argv = ("train.py", "--config=run.yaml", "fast")
    told = {**OPTIONS, "chdir": str(folder), "nodes": "all", **options}
    return read_request(argv, told, os.environ)


def copied(project: Path, to: Path) -> Path:
    subprocess.run(("cp", "-r", str(project), str(to)), check=True)
    return to


def there(folder: Path, asked: LaunchRequest, name: str = "cellar") -> MachineAnswer:
    """Return what a machine says whose files lie in a folder."""
    found = file_hashes(folder, (*asked.files, *asked.nearby))
    return MachineAnswer(
        name,
        file_hashes=tuple(digest.hex() for digest in found),
        script_hash=found[0].hex(),
    )


@pytest.mark.parametrize("has_git", [True, False])
def test_what_git_does_not_ignore_and_what_the_command_names_is_found(
    project: Path, has_git: bool
) -> None:
    if has_git:
        subprocess.run(("git", "init", "-q"), cwd=project, check=True)
    found = nearby_files(project, ("python", "train.py", "--config=run.yaml"), {"train.py"})
    assert found == ("run.yaml", "plugins/fast.py", "plugins/slow.py")


def test_a_plugin_or_settings_that_differ_are_told_and_nothing_is_refused(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = copied(project, tmp_path_factory.mktemp("other") / "code")
    asked = wanted(project)
    assert asked.files == ("train.py",)
    assert nearby_differences(asked, [there(project, asked, "attic"), there(other, asked)]) == []
    (other / "plugins" / "fast.py").write_text("other")
    (other / "run.yaml").write_text("lr: 2")
    machines = [there(project, asked, "attic"), there(other, asked)]
    check_alike(asked, machines)
    (line,) = nearby_differences(asked, machines)
    assert line.startswith("run.yaml, plugins/fast.py on cellar: not the same as here;")


def test_of_what_is_missing_only_what_the_command_names_is_told(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = copied(project, tmp_path_factory.mktemp("other") / "code")
    (other / "plugins" / "slow.py").unlink()
    asked = wanted(project)
    assert nearby_differences(asked, [there(other, asked)]) == []
    (other / "run.yaml").unlink()
    (line,) = nearby_differences(asked, [there(other, asked)])
    assert line.startswith("run.yaml on cellar: ")


def test_an_older_version_that_hashes_nothing_is_believed(project: Path) -> None:
    assert nearby_differences(wanted(project), [MachineAnswer("cellar")]) == []


@pytest.mark.parametrize(
    "options", [{"nodes": ""}, {"ship": True}, {"allow_differences": True}], ids=str
)
def test_nothing_is_looked_for_where_nothing_is_compared(
    project: Path, options: dict[str, Any]
) -> None:
    assert wanted(project, **options).nearby == ()


def test_of_very_many_files_the_nearest_are_compared(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    for number in range(MAX_FILES):
        (deep / f"m{number}.py").touch()
    (tmp_path / "near.py").touch()
    found = nearby_files(tmp_path, ("python",), ())
    assert len(found) == MAX_FILES
    assert found[0] == "near.py"
