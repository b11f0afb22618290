"""Real scripts under `jupiterctl launch`, as they are: on this machine, and on two nodes."""

import asyncio
import contextlib
import importlib.util
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from tests.support.daemons.cluster import BIN, Cluster, Daemon, all_gone, running
from tests.support.daemons.surroundings import own_network
from tests.support.fork_server import jupiterd_command

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.xdist_group("launch"),
    pytest.mark.cores(1),
    pytest.mark.timeout(180),
]

SCRIPTS = Path(__file__).parents[1] / "scripts"
TIMEOUT_S = 100.0
GONE_S = 15.0


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skip a script whose library isn't installed, and say which."""
    absent = [name for name in modules if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"not installed: {', '.join(absent)}")


def launched(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "jupiterctl", "launch", *arguments],
        cwd=SCRIPTS,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def with_python(*arguments: str) -> tuple[str, ...]:
    return ("--", sys.executable, *arguments)


@contextlib.contextmanager
def launching(*arguments: str, prefix: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    """Start a launch, and end it whatever happens."""
    process = subprocess.Popen(
        [*prefix, BIN / "jupiterctl", "launch", *arguments],
        cwd=SCRIPTS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read_until(process: subprocess.Popen[str], words: str, times: int) -> str:
    """Return what was printed until these words came so often; the test's time limit is ours."""
    assert process.stdout is not None
    said = ""
    while said.count(words) < times:
        line = process.stdout.readline()
        assert line, said
        said += line
    return said


def descendants(process: subprocess.Popen[str]) -> list[int]:
    return [child.pid for child in psutil.Process(process.pid).children(recursive=True)]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        pytest.param(  # on two nodes, two ranks each, below
            "ddp_gpt.py", "weights equal: True", marks=[needs("torch"), pytest.mark.long]
        ),
        pytest.param(
            "hf_trainer.py",
            "of 2: 6 steps, mode distributed",
            marks=needs("torch", "transformers", "accelerate"),
        ),
        pytest.param(  # which the trainer above uses
            "accelerate_train.py",
            r"of 2: MULTI_CPU, batches \[4, 4\]",
            marks=[needs("torch", "accelerate"), pytest.mark.long],
        ),
        pytest.param("lightning_train.py", "of 2: 4", marks=needs("torch", "lightning")),
        pytest.param("mlx_train.py", "weights equal: True", marks=needs("mlx")),
    ],
)
def test_an_unmodified_script_runs_with_two_processes(script: str, words: str) -> None:
    done = launched("--per-node", "2", "--verbose", *with_python(script))
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        assert re.search(rf"^\[rank {rank}\] .*{words}$", done.stdout, re.MULTILINE), done.stdout


@needs("torch")
def test_a_killed_rank_ends_the_others_and_gives_its_status() -> None:
    began_s = time.monotonic()
    done = launched("--per-node", "2", *with_python("stepping.py", "--kill-at", "3"))
    assert done.returncode == 128 + signal.SIGKILL
    assert "rank 1 was killed by SIGKILL; the others were ended" in done.stderr
    assert time.monotonic() - began_s < TIMEOUT_S / 2


@needs("torch")
def test_the_status_of_the_first_failure_is_the_launch_s() -> None:
    done = launched("--per-node", "2", *with_python("stepping.py", "--die-at", "3"))
    assert done.returncode == 7
    assert "[rank 1] rank 1 has found something wrong" in done.stderr


@pytest.mark.smoke
@needs("torch")
async def test_ctrl_c_ends_everything() -> None:
    arguments = ("--per-node", "2", "--verbose", *with_python("waiting.py"))
    with launching(*arguments) as process:
        await asyncio.to_thread(read_until, process, "waits", 2)
        pids = descendants(process)
        process.send_signal(signal.SIGINT)
        said, _ = await asyncio.to_thread(process.communicate)
        assert process.returncode == 130, said
        assert "KeyboardInterrupt" in said, "the script had its chance to save"
        assert await all_gone(pids, GONE_S)


@needs("torch")
async def test_a_second_ctrl_c_does_not_wait() -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('waits', flush=True); time.sleep(600)"
    )
    with launching(*with_python("-c", deaf)) as process:
        await asyncio.to_thread(read_until, process, "waits", 1)
        pids = descendants(process)
        process.send_signal(signal.SIGINT)
        await asyncio.to_thread(read_until, process, "press Ctrl-C again", 1)
        began_s = time.monotonic()
        process.send_signal(signal.SIGINT)
        await asyncio.to_thread(process.communicate)
        assert process.returncode == 130
        assert time.monotonic() - began_s < 3.0
        assert await all_gone(pids, GONE_S)


@needs("torch")
async def test_nothing_is_left_where_jupiterctl_is_killed() -> None:
    arguments = ("--per-node", "2", "--verbose", *with_python("waiting.py"))
    with launching(*arguments) as process:
        await asyncio.to_thread(read_until, process, "waits", 2)
        pids = descendants(process)
        assert len(pids) == 6, "two ranks and the store, each with its keeper"
        process.kill()
        assert await all_gone(pids, GONE_S)


def test_a_taken_master_port_is_named() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = launched("--per-node", "2", "--master-port", port, *with_python("ddp_gpt.py"))
    assert done.returncode == 7
    assert f"port {port} on 127.0.0.1 is taken" in done.stderr


@contextlib.asynccontextmanager
async def two_daemons(folder: Path, *options: str):
    """Run two daemons that nobody but themselves can meet, the second with these options."""
    with own_network() as prefix:
        first = Daemon(folder, "one", prefix)
        second = Daemon(folder, "two", prefix, command=(*jupiterd_command(), *options))
        async with running([first, second]) as cluster:
            await cluster.say_yes()
            yield cluster, prefix


def on_nodes(cluster: Cluster, prefix: Sequence[str], *arguments: str) -> Iterator[object]:
    state_dir = ("--state-dir", str(cluster[0].state_dir))
    return launching(*state_dir, "--verbose", *arguments, prefix=prefix)


@pytest.mark.parametrize(
    "script", ["ddp_gpt.py", pytest.param("mlx_train.py", marks=pytest.mark.smoke)]
)
async def test_a_script_runs_on_two_nodes_and_ends_wherever_a_part_of_it_dies(
    tmp_path: Path, script: str
) -> None:
    async with two_daemons(tmp_path, "--allow-scripts") as (cluster, prefix):
        two_each = ("--nodes", "all", "--per-node", "2")
        with on_nodes(cluster, prefix, *two_each, *with_python(script)) as process:
            said, _ = await asyncio.to_thread(process.communicate)
            assert process.returncode == 0, cluster.failure_text(said)
            assert said.count("weights equal: True") == 4
            assert said.count(" of 4 started") == 4
        if script != "ddp_gpt.py":
            return
        waiting = with_python("waiting.py")
        with on_nodes(cluster, prefix, "--nodes", "all", *waiting) as process:
            await asyncio.to_thread(read_until, process, "waits", 2)
            pids = [*cluster[1].workers(), *descendants(process)]
            process.kill()
            assert await all_gone(pids, GONE_S), "jupiterctl was killed"
        soon = ("--cut-timeout", "5")
        with on_nodes(cluster, prefix, "--nodes", "all", *soon, *waiting) as process:
            await asyncio.to_thread(read_until, process, "waits", 2)
            pids = [*cluster[1].workers(), *descendants(process)]
            cluster[1].kill()
            said, _ = await asyncio.to_thread(process.communicate)
            assert process.returncode == 1, said
            assert "the ranks on two are lost" in said
            assert await all_gone(pids, GONE_S), "the other daemon was killed"


async def test_a_machine_whose_owner_did_not_allow_it_runs_nothing(tmp_path: Path) -> None:
    async with two_daemons(tmp_path) as (cluster, prefix):
        with on_nodes(cluster, prefix, "--nodes", "all", *with_python("ddp_gpt.py")) as process:
            said, _ = await asyncio.to_thread(process.communicate)
        assert process.returncode == 5
        assert "error: two doesn't run scripts of other machines" in said
        assert "hint: its owner allows them there with: jupiterd --allow-scripts" in said
        assert "started" not in said


@pytest.mark.full
async def test_a_folder_travels_to_a_machine_that_has_none_of_its_code(tmp_path: Path) -> None:
    code = tmp_path / "code"
    (code / "pkg").mkdir(parents=True)
    (code / "pkg" / "model.py").write_text("import os\ndef where(): return os.getcwd()\n")
    (code / "train.py").write_text(
        "import os, pkg.model\nprint('rank', os.environ['RANK'], 'in', pkg.model.where())\n"
    )
    (code / ".gitignore").write_text("secret\n")
    (code / "secret").write_text("x")
    async with two_daemons(tmp_path, "--allow-scripts") as (cluster, prefix):
        asked = ("--nodes", "one,two", "--per-node", "one=1,two=2", "--chdir", str(code), "--ship")
        with on_nodes(cluster, prefix, *asked, "--", "train.py") as process:
            said, _ = await asyncio.to_thread(process.communicate)
        assert process.returncode == 0, cluster.failure_text(said)
        assert f"rank 0 in {code}" in said
        folders = cluster[1].state_dir / "shipped" / "folders"
        for rank in (1, 2):
            assert f"[rank {rank}] rank {rank} in {folders}/" in said
        assert "ships 3 files" in said
        (run,) = folders.iterdir()
        assert not (run / "secret").exists()
