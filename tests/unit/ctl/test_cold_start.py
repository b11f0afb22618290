import resource
import subprocess
import sys

import pytest

from tests.unit.ctl.conftest import ScriptedDaemon

LIMIT_S = 0.150
TRIES = 6
MOST_TIMES = 4.0
"""What bare Python takes."""

HEAVY = ("grpc", "google", "pydantic", "msgpack", "ruamel", "asyncio", "textual", "torch", "numpy")

NEEDLESS = (
    *HEAVY, "bz2", "lzma", "logging", "random", "shlex", "shutil", "ssl", "subprocess", "tempfile",
    "cryptography", "zeroconf", "jupiterd.client.channel", "jupiterd.client.reachability",
    "jupiterd.ctl.output.data_lines", "jupiterd.ctl.sources.data_source",
)  # fmt: skip
"""What a question that is answered has no use for."""


def _seconds(*arguments: str) -> float:
    """Return how long the processors are busy with a program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run((sys.executable, *arguments), check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from jupiterd.ctl.main import run; run(['--help']); "
        f"sys.exit(','.join(name for name in {HEAVY} if name in sys.modules) or 0)"
    )
    done = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("question", [("data", "why", "2667"), ("status",), ("monitor", "--once")])
def test_a_question_imports_nothing_that_it_has_no_use_for(
    daemon: ScriptedDaemon, question: tuple[str, ...]
) -> None:
    daemon.documents["why"] = {"schema": "jupiter/v1", "why": {"sample": {"id": "2667"}}}
    arguments = ["--state-dir", str(daemon.state_dir), *question]
    program = (
        f"import sys; from jupiterd.ctl.main import run; failed = run({arguments}); "
        f"sys.exit(','.join(name for name in {NEEDLESS} if name in sys.modules) or failed)"
    )
    done = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_nobody_looks_for_garbage_in_what_a_short_program_imports():
    program = (
        "import atexit, gc, sys; from jupiterd.ctl.main import main; looks = []; "
        "gc.callbacks.append(lambda *told: looks.append(told)); "
        "atexit.register(lambda: print(len(looks))); "
        "sys.argv[1:] = ['--state-dir', '/nowhere', 'status']; main()"
    )
    done = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "0\n")


@pytest.mark.parametrize("command", ["--help", "version"])
def test_a_command_that_asks_nobody_starts_within_150_ms_of_bare_python(command: str):
    # What the processes compute, taken in turns: other programs add nothing to that.
    bare = full = float("inf")
    for _ in range(TRIES):
        bare = min(bare, _seconds("-c", "pass"))
        full = min(full, _seconds("-m", "jupiterd.ctl.main", command))
    assert full - bare <= LIMIT_S
    assert full <= MOST_TIMES * bare
