"""jupiter-tui in a real terminal: a pty, a process, and keys."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tui.terminal import Terminal, dashboard

GONE_S = 5.0


@pytest.fixture
def terminal(short_dir: Path) -> Iterator[Terminal]:
    with dashboard(short_dir) as terminal:
        yield terminal


def test_it_opens_without_a_daemon_and_leaves_the_terminal_as_it_was(terminal):
    terminal.read_until(lambda seen: b"Jupiter" in seen and b"lost" in seen)
    terminal.read_until(lambda seen: b"control.sock" in seen and b"jupiterd --state-dir" in seen)
    shown = terminal.seen
    terminal.press(b"q")
    assert terminal.ended() == 0
    assert terminal.is_restored
    # What gRPC's core would log, whatever the environment asks for.
    assert b"grpc" not in (shown + terminal.seen).lower()
    assert b"Traceback" not in shown + terminal.seen


def test_a_signal_ends_it_as_well_as_a_key(terminal):
    terminal.read_until(lambda seen: b"Jupiter" in seen and b"lost" in seen)
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.ended() == 0
    assert terminal.is_restored


def test_it_ends_soon_after_its_terminal_has_gone_without_a_signal(terminal):
    terminal.read_until(lambda seen: b"Jupiter" in seen and b"lost" in seen)
    terminal.close()
    assert terminal.process.wait(GONE_S) == 0
