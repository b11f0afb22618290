"""The dashboard in a real terminal, against three real daemons."""

import time
from pathlib import Path

import pytest

from tests.support.daemons.cluster import Cluster, Daemon, three_daemons
from tests.support.tui.terminal import Terminal, dashboard

pytestmark = [
    pytest.mark.full,
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(180),
]

BACK_WITHIN_S = 2.0


async def test_the_leader_and_then_its_own_daemon_may_die_while_it_is_open(tmp_path: Path) -> None:
    async with three_daemons(tmp_path) as cluster:
        view = (await cluster.meet())[0]
        leader = cluster.by_id(view["cluster"]["leader"], view)
        own, other = (daemon for daemon in cluster.daemons if daemon is not leader)
        with dashboard(own.state_dir) as terminal:
            _shows_everybody(terminal, cluster, leader)
            leader.kill()
            _shows_a_new_leader(terminal, leader, (own, other))
            own.kill()
            _keeps_what_it_knew(terminal, other)
            own.start()
            await _is_live_again(terminal, own, (own, other))
            terminal.press(b"q")
            assert terminal.ended() == 0
            assert terminal.is_restored


def _shows_everybody(terminal: Terminal, cluster: Cluster, leader: Daemon) -> None:
    words = ("● live", "3/3 nodes alive", f"leader {leader.name} ")
    terminal.until(lambda text: all(word in text for word in words))
    # What is painted comes in pieces: the header may stand there before the table does.
    terminal.until(lambda text: all("alive" in _row(text, daemon) for daemon in cluster.daemons))
    terminal.press(b"2")
    terminal.until(lambda text: "no cycle has been started" in text)
    terminal.press(b"1")
    terminal.until(lambda text: "Health" in text)


def _shows_a_new_leader(terminal: Terminal, gone: Daemon, left: tuple[Daemon, ...]) -> None:
    terminal.until(lambda text: f"{gone.name} is gone" in text and "gone" in _row(text, gone))
    terminal.until(lambda text: any(f"leader {daemon.name} " in text for daemon in left))
    terminal.until(lambda text: "2/3 nodes alive" in text and "● live" in text)
    terminal.until(lambda text: f"* {gone.name} " not in text)  # whoever is gone doesn't lead


def _keeps_what_it_knew(terminal: Terminal, other: Daemon) -> None:
    row = _row(terminal.screen.text, other).partition("alive")[0]
    bright = terminal.screen.style_of(row)
    terminal.until(lambda text: "● lost, " in text and "as of" in text)
    terminal.until(lambda text: "retry in 1 s" in text or "trying again" in text)
    terminal.until(lambda text: "hint: start it again, with the options it had: jupiterd" in text)
    terminal.until(lambda text: "2/3 nodes alive" in text and "alive" in _row(text, other))
    terminal.until(lambda _: terminal.screen.style_of(row) != bright)  # dimmed


async def _is_live_again(terminal: Terminal, own: Daemon, left: tuple[Daemon, ...]) -> None:
    while await own.ask() is None:
        pass
    began_s = time.monotonic()
    terminal.until(lambda text: "● live" in text)
    took_s = time.monotonic() - began_s
    print(f"live {took_s:.2f} s after the daemon answered")
    assert took_s <= BACK_WITHIN_S
    terminal.until(lambda text: any(f"leader {daemon.name} " in text for daemon in left))


def _row(text: str, daemon: Daemon) -> str:
    """Return what the table of nodes says of a daemon; it stands above everything else."""
    rows = (line.lstrip("│>* ") for line in text.splitlines())
    return next((row for row in rows if row.startswith(f"{daemon.name} ")), "")
