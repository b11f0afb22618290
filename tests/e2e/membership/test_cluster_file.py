"""A cluster written down: its hosts are met without multicast, its word counts where it may."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jupiterd.cluster.planning.roles import PINNED, WRITTEN
from jupiterd.errors import ExitCode
from tests.e2e.newcomers.test_bad_input import jupiterd, refusal
from tests.support.daemons.cluster import LOOK_S, Cluster, Daemon, Document, running
from tests.support.daemons.surroundings import own_network
from tests.support.fork_server import jupiterd_command

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(120),
]

SOON_S = 30.0

FILE = """\
backend: mpi
nodes:
  - host: {address}
    name: one
    memory_gb: 900000
    ssh_user: me
  - name: two
    role: generator
"""


async def seen(cluster: Cluster, daemon: Daemon, is_so: Callable[[Document], bool]) -> Document:
    """Return a daemon's status as soon as it is so."""
    deadline_s = time.monotonic() + SOON_S
    while True:
        view = await daemon.ask()
        if view is not None and is_so(view):
            return view
        assert time.monotonic() < deadline_s, cluster.failure_text(
            f"not within {SOON_S:g} s: {view}"
        )
        await asyncio.sleep(LOOK_S)


def codes(view: Document) -> set[str]:
    return {warning["code"] for warning in view["health"]}


def role_of_two(view: Document) -> tuple[str, str]:
    (row,) = [node for node in view["nodes"] if node["name"] == "two"]
    return row["role"], row["reason"]


async def test_daemons_that_multicast_does_not_unite_meet_at_the_hosts_of_a_file(
    tmp_path: Path,
) -> None:
    file, letters = tmp_path / "attic.yaml", tmp_path / "letters"
    letters.mkdir()
    (letters / "one.txt").write_text("the queen walks over green hills")
    with own_network() as prefix:
        one = Daemon(tmp_path, "one", prefix)
        async with running([one]) as alone:
            (view,) = await alone.meet()
            file.write_text(FILE.format(address=view["nodes"][0]["addresses"][0]))
            scoped = (*jupiterd_command(), "--scope", "attic", "--cluster", file)
            two = Daemon(tmp_path, "two", prefix, command=scoped)
            async with running([two]):
                cluster = Cluster([one, two])
                await cluster.meet()

                view = await seen(cluster, two, lambda view: "contradiction" in codes(view))
                assert "no-effect" in codes(view)
                line = f"and {file}:5 says 900000"
                assert line in cluster.ctl("status", daemon=two).stdout
                listed = cluster.ctl("node", "list", daemon=two).stdout.splitlines()
                assert listed[-1].startswith("warning: one has memory_gb "), listed
                assert listed[-1].endswith(line)
                view = await seen(cluster, one, lambda _: True)
                assert not {"contradiction", "no-effect"} & codes(view), "its own word, no other's"

                start = (
                    "train",
                    "start",
                    "--data",
                    str(letters),
                    "--model",
                    "1m",
                    "--nodes",
                    "one",
                )
                tried = cluster.ctl(*start, "--dry-run", daemon=two)
                assert tried.returncode == 0, "with one side up, that one begins"
                asked = cluster.ctl(*start, "--islands", "on", "--dry-run", daemon=two)
                status, message, hint = refusal(asked)
                assert status == ExitCode.USAGE
                assert message == "islands need two machines that could train, and there is 1"
                assert "--islands off" in hint

                one.kill()
                await seen(cluster, two, lambda view: role_of_two(view) == ("generator", WRITTEN))
                done = cluster.ctl("node", "role", "two", "trainer", daemon=two)
                assert done.returncode == 0, done.stderr
                await seen(cluster, two, lambda view: role_of_two(view) == ("trainer", PINNED))
                assert two.log.read_text().count(" contradiction ") == 1


@pytest.mark.parametrize("is_named", [True, False])
def test_a_broken_file_keeps_a_daemon_from_starting(tmp_path: Path, is_named: bool) -> None:
    folder = tmp_path / "node"
    file = tmp_path / "mine.yaml" if is_named else folder / "cluster.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("nodes:\n  - host: 10.0.0.1\n    role: king\n")
    named = ("--cluster", file) if is_named else ()
    status, message, hint = refusal(jupiterd(*named, "--state-dir", folder))
    assert status == ExitCode.USAGE
    expected = "expected one of 'generator', 'trainer', 'hybrid', got 'king'"
    assert message == f"{file}:3: nodes.0.role: {expected}"
    assert hint == "config/cluster.example.yaml shows every key"
    assert not (folder / "key.pem").exists()
