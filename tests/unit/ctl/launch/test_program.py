import sys
from pathlib import Path

import pytest

from jupiterd.ctl.launch.engine_guess import guess_engine, imports_of, own_files
from jupiterd.ctl.launch.local_imports import local_imports
from jupiterd.ctl.launch.program import module_of, read_program
from jupiterd.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def guess(folder: Path, *argv: str) -> tuple[str, str]:
    found = guess_engine(imports_of(read_program(argv, folder), folder, sys.executable), folder)
    return found.engine, found.reason


@pytest.mark.parametrize(
    ("argv", "module"),
    [
        (("python", "-m", "mlx_lm", "lora"), "mlx_lm"),
        (("python", "-um", "pkg.train"), "pkg.train"),
        (("python", "-mpkg"), "pkg"),
        (("python", "-X", "dev", "-W", "error", "-m", "pkg"), "pkg"),
        (("python", "-Xdev", "-I", "-m", "pkg"), "pkg"),
        (("python", "--check-hash-based-pycs", "-m"), ""),
        (("python", "-c", "import m", "-m", "x"), ""),
        (("python", "train.py", "-m", "x"), ""),
        (("python", "-"), ""),
        (("python", "-m"), ""),
    ],
)
def test_a_module_is_read_from_the_options_of_python(argv: tuple[str, ...], module: str):
    assert module_of(argv) == module


def test_a_script_that_is_named_alone_is_run_by_a_python(folder: Path):
    write(folder, {"train.py": ""})
    alone, named = read_program(["train.py", "-x"], folder), read_program(["accelerate"], folder)
    assert (alone.argv, alone.is_alone, alone.is_bare) == (("python", "train.py", "-x"), True, True)
    assert (named.is_python, named.is_bare) == (False, False)
    assert read_program(["/opt/bin/python3.12", "train.py"], folder).is_bare is False


def test_its_own_files_are_found_wherever_the_statements_stand(folder: Path):
    write(
        folder,
        {
            "train.py": "import model\ndef later():\n    from tools import lr, data as d\n",
            "model.py": "from layers.attention import Attention\nimport torch.nn as nn\n",
            "layers/__init__.py": "",
            "layers/attention.py": "from . import norm\nfrom ..nowhere import x\n",
            "layers/norm.py": "import math",
            "tools/lr.py": "x = 1",  # a package without __init__
            "tools/data.py": "this is no Python",
            "unused.py": "",
        },
    )
    found = local_imports(folder / "train.py", (folder,), folder)
    assert own_files(found, folder)[0] == "train.py"
    assert set(own_files(found, folder)) == {
        "train.py", "model.py", "layers/__init__.py", "layers/attention.py", "layers/norm.py",
        "tools/lr.py", "tools/data.py",
    }  # fmt: skip
    assert dict(found.outside)["torch"] == folder / "model.py"


def test_files_that_import_each_other_are_found_once(folder: Path):
    write(folder, {"a.py": "import b", "b.py": "import a"})
    found = local_imports(folder / "a.py", (folder,), folder)
    assert own_files(found, folder) == ["a.py", "b.py"]


def test_the_engine_is_told_by_what_the_script_and_its_files_import(folder: Path):
    write(folder, {"train.py": "import mlx.core as mx\n"})
    assert guess(folder, "train.py") == ("mlx", "train.py imports it")
    write(folder, {"train.py": "import torch  # not mlx\n"})
    assert guess(folder, "train.py") == ("torch", "train.py imports it")
    write(folder, {"train.py": "import model", "model.py": "from mlx import nn"})
    assert guess(folder, "python", "train.py") == ("mlx", "model.py imports it")
    assert guess(folder, "true") == ("torch", "no import of mlx was found")


def test_the_nearer_import_counts_where_both_are_there(folder: Path):
    write(folder, {"train.py": "import torch, export", "export.py": "import mlx.core"})
    assert guess(folder, "train.py")[0] == "torch"


def test_a_module_by_its_name_is_read_here_and_where_python_has_it(folder: Path):
    write(folder, {"pkg/__init__.py": "", "pkg/train.py": "import mlx", "pkg/__main__.py": ""})
    assert guess(folder, "python", "-m", "pkg.train") == ("mlx", "pkg/train.py imports it")
    assert guess(folder, "python", "-m", "pkg")[1] == "no import of mlx was found"
    assert guess(folder, "python", "-m", "no.such.module")[0] == "torch"


def test_an_installed_module_that_imports_mlx_in_its_package_is_one_for_mlx(folder: Path):
    pytest.importorskip("mlx_lm", reason="mlx-lm isn't installed")
    engine, reason = guess(folder, "python", "-m", "mlx_lm", "lora")
    assert (engine, reason.split("/")[0]) == ("mlx", "mlx_lm")


def test_a_package_is_followed_though_its_environment_lies_in_a_project_on_the_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    packages = "project/.venv/lib/site-packages"
    write(
        folder, {f"{packages}/pkg/__init__.py": "", f"{packages}/pkg/__main__.py": "import pkg.a"}
    )
    write(folder, {f"{packages}/pkg/a.py": "import mlx"})
    monkeypatch.setattr(sys, "path", [str(folder / "project"), str(folder / packages)])
    assert guess(folder / "elsewhere", "python", "-m", "pkg") == ("mlx", "pkg/a.py imports it")


@pytest.mark.parametrize(
    "argv",
    [
        ("torchrun", "--nproc-per-node", "2", "train.py"),
        ("/opt/bin/torchrun", "train.py"),
        ("python", "-m", "torch.distributed.run", "train.py"),
        ("mpirun", "-n", "2", "train.py"),
        ("torchrun", "--nnodes", "2", "train.py"),
        ("torchrun", "--nnodes", "2", "--master-addr", "box1", "train.py"),
        ("torchrun", "--rdzv-endpoint", "box1:29500", "train.py"),
        ("torchrun", "train.py", "--rdzv-backend=c10d", "--rdzv-endpoint=box1"),
        ("torchrun", "--standalone", "--rdzv-backend=c10d", "--rdzv-endpoint=box1", "train.py"),
        ("deepspeed", "--rdzv-backend=c10d", "--rdzv-endpoint=box1", "train.py"),
    ],
    ids=" ".join,
)
def test_another_launcher_is_not_run_several_times(folder: Path, argv: tuple[str, ...]):
    write(folder, {"train.py": ""})
    program = read_program(argv, folder)
    program.check_ranks(1)
    with pytest.raises(UsageError, match="starts ranks of its own, and 4 of it would know nothing"):
        program.check_ranks(4)


@pytest.mark.parametrize(
    "argv",
    [
        ("python", "torchrun.py"),
        ("accelerate", "launch"),
        ("torchrun", "--rdzv-backend", "c10d", "--rdzv-endpoint", "box1:29500", "torchrun.py"),
        ("torchrun", "--rdzv_backend=c10d", "--rdzv_endpoint=box1:29500", "torchrun.py"),
        (
            *("python", "-m", "torch.distributed.run"),
            *("--rdzv-backend=c10d", "--rdzv-endpoint=box1", "torchrun.py"),
        ),
    ],
    ids=" ".join,
)
def test_what_is_no_launcher_or_meets_its_like_runs_as_often_as_one_likes(
    folder: Path, argv: tuple[str, ...]
):
    write(folder, {"torchrun.py": ""})
    read_program(argv, folder).check_ranks(4)


def test_nothing_starts_where_a_launcher_would_run_twice(ctl, folder: Path):
    write(folder, {"train.py": "open('started', 'w')"})
    ran = ctl("launch", "--chdir", str(folder), "--per-node", "2", "--", "torchrun", "train.py")
    assert ran.exit_code == UsageError.exit_code
    assert "torchrun starts ranks of its own" in ran.err
    assert not (folder / "started").exists()
