import os
import subprocess
from pathlib import Path

import pytest

from jupiterd.ctl.launch import working_folder as module
from jupiterd.ctl.launch.working_folder import working_folder
from jupiterd.errors import UsageError

FILES = {
    "train.py": "pass",
    "pkg/model.py": "import torch",
    "pkg/cache/big.bin": "0" * 5000,
    "pkg/cache/kept.bin": "0",
    "data/a.bin": "0" * 300,
    "logs/run.log": "x",
    "notes.log": "x",
    "pkg/__pycache__/model.cpython-311.pyc": "x",
    "env/pyvenv.cfg": "home = /usr",
    "env/bin/python": "x",
    ".gitignore": "data/\n*.log\n",
    "pkg/.gitignore": "cache/*\n!cache/kept.bin\n",
}
TRAVELS = {".gitignore", "pkg/.gitignore", "pkg/cache/kept.bin", "pkg/model.py", "train.py"}


@pytest.fixture(params=["git", "no git"])
def folder(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "code"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    if request.param == "git":
        git(root, "init", "-q")
        git(root, "add", "train.py")
    else:
        monkeypatch.setattr(module, "_LIST", ("no-such-git",))
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


def test_all_travels_that_git_would_not_ignore(folder: Path) -> None:
    found = working_folder(folder)
    assert set(found.sizes) == TRAVELS
    assert found.sizes["train.py"] == len("pass")
    assert found.shown.startswith("5 files, ")


def test_what_is_named_travels_too(folder: Path) -> None:
    found = working_folder(folder, ["data", "pkg/cache/big.bin"])
    assert set(found.sizes) == TRAVELS | {"data/a.bin", "pkg/cache/big.bin"}
    for absent in ("nothing", "..", "/etc/hosts"):
        with pytest.raises(UsageError, match="no such file or folder below"):
            working_folder(folder, [absent])


def test_links_that_lead_out_of_the_folder_stay(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "inner").symlink_to("train.py")
    found = working_folder(folder)
    assert set(found.sizes) == {*TRAVELS, "inner"}
    assert found.left_out == ("dangling", "out")


def test_names_that_are_no_text_stay(folder: Path) -> None:
    Path(os.fsdecode(bytes(folder) + b"/caf\xe9.py")).write_text("x")
    assert set(working_folder(folder).sizes) == TRAVELS


def test_more_than_may_travel_is_refused_with_the_largest_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(3 << 20)
    with pytest.raises(UsageError, match=r"and 2 MiB may: weights\.bin 3\.0 MiB, ") as refused:
        working_folder(folder, limit_mib=2)
    assert "--ship-limit" in refused.value.hint
    assert working_folder(folder, limit_mib=4).size_bytes > 3 << 20
    monkeypatch.setattr(module, "MAX_FILES", 3)
    with pytest.raises(UsageError, match=r"6 files, .*, and 3 files may"):
        working_folder(folder)


def test_a_file_that_was_deleted_does_not_travel(folder: Path) -> None:
    (folder / "train.py").unlink()
    assert set(working_folder(folder).sizes) == TRAVELS - {"train.py"}


def test_an_empty_folder_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing in"):
        working_folder(tmp_path)


def test_a_repository_inside_travels_by_its_own_rules(folder: Path) -> None:
    inner = folder / "lib"
    inner.mkdir()
    (inner / "x.py").write_text("")
    (inner / "x.tmp").write_text("")
    (inner / ".gitignore").write_text("*.tmp")
    git(inner, "init", "-q")
    assert set(working_folder(folder).sizes) == TRAVELS | {"lib/x.py", "lib/.gitignore"}
