"""jupiterctl launch on this machine, with scripts that need no library."""

import sys
from pathlib import Path

import pytest

from jupiterd.ctl.launch.program import script_of
from jupiterd.ctl.launch.run import ending


def test_a_script_runs_alone_without_a_daemon(ctl, script):
    name = script("import os; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])")
    ran = ctl("launch", "--", sys.executable, name)
    assert (ran.exit_code, ran.out) == (0, "[rank 0] rank 0 of 1\n")


def test_all_ranks_are_shown_where_that_is_asked_for(ctl, script):
    name = script("import os; print('mine', os.environ['LOCAL_RANK'])")
    ran = ctl("launch", "--per-node", "3", "--engine", "mlx", "--verbose", "--", name)
    assert ran.exit_code == 0
    assert sorted(ran.out.splitlines()) == [f"[rank {n}] mine {n}" for n in range(3)]


def test_the_arguments_of_the_script_are_its_own(ctl, script):
    name = script("import sys; print(sys.argv[1:])")
    ran = ctl("launch", sys.executable, name, "--verbose", "-o", "x")
    assert ran.out == "[rank 0] ['--verbose', '-o', 'x']\n"


def test_the_status_is_that_of_the_first_failure_and_the_others_end(ctl, script):
    name = script(
        "import os, sys, time\n"
        "if os.environ['RANK'] == '1':\n"
        "    print('a hidden reason', file=sys.stderr)\n"
        "    sys.exit(7)\n"
        "time.sleep(300)\n"
    )
    ran = ctl("launch", "--per-node", "2", "--engine", "mlx", "--", sys.executable, name)
    assert ran.exit_code == 7
    assert "rank 1 ended with status 7; the others were ended" in ran.err
    assert "[rank 1] a hidden reason" in ran.err


def test_variables_are_given_to_every_process(ctl, script):
    name = script("import os; print(os.environ['COLOUR'], os.environ['OMP_NUM_THREADS'])")
    told = ("--env", "COLOUR=a=b", "--env", "OMP_NUM_THREADS=3")
    ran = ctl("launch", *told, "--", sys.executable, name)
    assert ran.out == "[rank 0] a=b 3\n"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("--env", "RANK=1", "--", "true"), 2, "RANK is set by jupiterctl launch itself"),
        (("--env", "nothing", "--", "true"), 2, "this shell has no variable of that name"),
        (("--", "python", "absent.py"), 2, "there is no script absent.py"),
        (("--", "no-such-program"), 6, "there is no program no-such-program"),
        (("--per-node", "0", "--", "true"), 2, "0 is no number from 1 to 64"),
        (("--nodes", "all", "--", "true"), 3, "no jupiterd answers"),
        (("--nodes", "all", "--", "true", "\udcff.txt"), 2, "'\\udcff.txt' isn't UTF-8"),
        ((), 2, "missing argument"),
    ],
)
def test_what_can_not_be_run_is_one_line_and_a_hint(ctl, script, arguments, status, words):
    ran = ctl("launch", *arguments)
    assert ran.exit_code == status
    assert words in ran.err
    assert "hint: " in ran.err
    assert "Traceback" not in ran.err


def test_the_script_is_the_first_python_file_of_the_command(tmp_path: Path):
    (tmp_path / "train.py").touch()
    assert script_of(["python", "-u", "train.py"], tmp_path) == str(tmp_path / "train.py")
    assert script_of(["python", "-m", "package"], tmp_path) == ""


def test_how_a_process_ended_is_said_in_words():
    assert ending(137) == "was killed by SIGKILL"
    assert ending(3) == "ended with status 3"
