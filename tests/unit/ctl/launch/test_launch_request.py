import json
import os
from pathlib import Path
from typing import Any

import pytest

from jupiterd.ctl.launch.launch_request import LaunchRequest, parsed_variables, read_request
from jupiterd.ctl.launch.machines import MachineAnswer, check_alike, variable_differences
from jupiterd.ctl.launch.machines import version_differences as versions_that_differ
from jupiterd.errors import ConflictError, UsageError

OPTIONS: dict[str, Any] = {
    "engine": "auto", "nodes": "", "per_node": "", "devices": (), "folder_map": (), "chdir": "",
    "python": "jupiter", "threads": None, "variables": (), "open_ports": (),
    "allow_differences": False,
    "master_port": None, "verbose": False, "ship": False, "ship_also": (), "ship_limit": 256,
    "cut_timeout": 60.0, "max_restarts": 0, "detach": False,
}  # fmt: skip


def wanted(folder: Path, *argv: str, **options: object) -> LaunchRequest:
    return read_request(argv, {**OPTIONS, "chdir": str(folder), **options}, os.environ)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import model")
    (tmp_path / "model.py").write_text("import torch")
    return tmp_path


def hashes(project: Path, *names: str) -> tuple[str, ...]:
    from blake3 import blake3

    return tuple(blake3((project / name).read_bytes()).hexdigest() for name in names)


def test_a_variable_is_given_as_it_is_here_or_as_told():
    assert parsed_variables(["A", "B=x=y", "C="], {"A": "1"}) == {"A": "1", "B": "x=y", "C": ""}


@pytest.mark.parametrize(
    ("bad", "words"),
    [("A", "no variable of that name"), ("=x", "no variable"), ("1A=x", "no variable")],
)
def test_only_variables_that_there_are_can_be_given(bad: str, words: str):
    with pytest.raises(UsageError, match=words):
        parsed_variables([bad], {})


def test_threads_hold_for_every_library_unless_a_variable_says_otherwise(project: Path):
    found = wanted(project, "train.py", threads=3, variables=("MKL_NUM_THREADS=1",)).variables
    assert (found["OMP_NUM_THREADS"], found["MKL_NUM_THREADS"]) == ("3", "1")


def test_machines_that_are_named_with_their_processes_are_those_that_run(project: Path):
    assert wanted(project, "train.py", per_node="a=2,b=1").nodes == "a,b"
    # as typed: the daemon puts its own machine first
    assert wanted(project, "train.py", nodes="b,a", per_node="2,1").per_node == "b=2,a=1"
    assert wanted(project, "train.py", nodes="all", per_node="2,1").per_node == "2,1"


def test_code_that_differs_anywhere_is_refused_with_the_names_of_the_files(project: Path):
    asked = wanted(project, "train.py", nodes="all")
    assert asked.files == ("train.py", "model.py")
    train, model = hashes(project, *asked.files)
    alike = MachineAnswer("attic", file_hashes=(train, model), script_hash=train)
    check_alike(asked, [alike])
    for differing in ((train, ""), (train, "00")):
        other = MachineAnswer("cellar", file_hashes=differing, script_hash=train)
        with pytest.raises(ConflictError, match=r"^model\.py on cellar: missing, or not the same"):
            check_alike(asked, [alike, other])
    may_differ = wanted(project, "train.py", nodes="all", allow_differences=True)
    check_alike(may_differ, [MachineAnswer("cellar", file_hashes=("", ""))])


def test_many_files_are_told_by_the_first_of_them(project: Path):
    for number in range(6):
        (project / f"m{number}.py").touch()
    (project / "train.py").write_text("import m0, m1, m2, m3, m4, m5")
    asked = wanted(project, "train.py", nodes="all")
    with pytest.raises(ConflictError, match=r"train\.py, m0\.py, m1\.py and 4 more files on"):
        check_alike(asked, [MachineAnswer("cellar", file_hashes=("",) * 7)])


def test_a_folder_that_travels_is_compared_nowhere_and_its_script_is_named_in_it(project: Path):
    asked = wanted(project, str(project / "train.py"), "-x", nodes="all", ship=True)
    assert asked.argv[1:] == ("train.py", "-x")
    question = asked.question({})
    assert (question.folder, question.script, question.files) == ("", "", ())
    assert asked.travelling is not None
    assert set(asked.travelling.sizes) == {"train.py", "model.py"}


@pytest.mark.parametrize(
    ("script", "nodes", "words"),
    [("train.py", "", "none is named"), ("../outside.py", "all", "outside.py lies outside")],
)
def test_a_folder_that_can_not_travel_is_said(project: Path, script: str, nodes: str, words: str):
    (project.parent / "outside.py").touch()
    with pytest.raises(UsageError, match=words):
        wanted(project, script, nodes=nodes, ship=True)


def test_versions_and_variables_that_differ_are_told(project: Path):
    asked = wanted(project, "train.py", nodes="all", variables=("NCCL_DEBUG=INFO",))
    attic = MachineAnswer("attic", {"Python": "3.12.1", "torch": "2.9"}, {"HF_HOME": "/a"})
    cellar = MachineAnswer("cellar", {"Python": "3.12.1", "torch": "2.5"}, {"NCCL_DEBUG": "WARN"})
    assert versions_that_differ([attic, cellar]) == ["torch differs: 2.9 on attic, 2.5 on cellar"]
    told = variable_differences(asked, [attic, cellar])
    assert told[0] == "HF_HOME differs: /a on attic, not set on cellar"
    assert told[1:] == ["--env NAME gives all processes what this shell has"]


def test_a_dry_run_says_all_of_it_and_starts_nothing(ctl, project: Path):
    (project / "train.py").write_text("import model; open('started', 'w')")
    asked = ("--chdir", str(project), "--per-node", "2", "--env", "HF_TOKEN=sesame")
    ran = ctl("launch", "--dry-run", *asked, "--devices", "cpu", "--", "train.py", "-x")
    assert ran.exit_code == 0
    for words in ("train.py -x", "torch (model.py imports it)", str(project), "HF_TOKEN", "no GPU"):
        assert words in ran.out
    assert "ranks 0, 1 on this machine" in ran.out
    assert ran.out.endswith("nothing was started\n")
    assert "sesame" not in ran.out + ran.err
    assert not (project / "started").exists()


def test_a_dry_run_is_a_document_too(ctl, project: Path):
    ran = ctl("-o", "json", "launch", "--dry-run", "--chdir", str(project), "--", "train.py")
    told = json.loads(ran.out)["launch"]
    assert (told["engine"], told["files"]) == ("torch", ["train.py", "model.py"])
    assert told["nodes"][0]["ranks"] == [0]


def test_the_folder_may_be_another_one(ctl, project: Path):
    (project / "train.py").write_text("import os; print(os.path.realpath('.'))")
    ran = ctl("launch", "--chdir", str(project), "--", "train.py")
    assert ran.out == f"[rank 0] {project.resolve()}\n"
    assert "engine: torch" in ran.err
    assert ctl("launch", "--chdir", "/nowhere", "--", "train.py").exit_code == 2
