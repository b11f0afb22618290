"""Every exit code that is promised is met, with what is data on stdout and all else on stderr."""

import re
from collections.abc import Callable

import pytest

from jupiterd.ctl.main import EXIT_CODES
from jupiterd.errors import (
    ConflictError,
    ExitCode,
    JupiterError,
    NotFoundError,
    RefusedError,
    TimedOutError,
)
from tests.support.ctl.documents import STATUS


def well(daemon) -> None:
    daemon.documents["status"] = STATUS | {"health": []}


def failing(error: JupiterError) -> Callable[..., None]:
    def fail(daemon) -> None:
        daemon.failure = error

    return fail


MET = {
    ExitCode.OK: (well, "status --check"),
    ExitCode.FAILED: (failing(JupiterError("it broke", "mend it")), "status"),
    ExitCode.USAGE: (well, "status --sideways"),
    ExitCode.TIMED_OUT: (failing(TimedOutError("it takes too long", "wait")), "status"),
    ExitCode.REFUSED: (failing(RefusedError("not you", "ask")), "cluster open"),
    ExitCode.NOT_FOUND: (failing(NotFoundError("no such node", "node list")), "node show omega"),
    ExitCode.CONFLICT: (
        failing(ConflictError("one runs", "stop it")),
        "cycle start --domain python",
    ),
    ExitCode.UNHEALTHY: (lambda _: None, "status --check"),
}
"""Exit code -> what the daemon is told before, and a command that ends so."""

WITHOUT_A_DAEMON = {ExitCode.UNREACHABLE, ExitCode.INTERRUPTED}
"""Met in tests of their own, below."""


def test_each_code_that_is_promised_is_met_and_told_in_the_help():
    assert MET.keys() | WITHOUT_A_DAEMON == set(ExitCode)
    told = {int(number) for number in re.findall(r"\b(\d+) [a-z]", EXIT_CODES)}
    assert told == set(map(int, ExitCode))


@pytest.mark.parametrize("code", MET, ids=lambda code: code.name.lower())
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_command_ends_so(daemon, ctl, code, form):
    prepare, command = MET[code]
    prepare(daemon)
    ran = ctl(*command.split(), "-o", form)
    assert ran.exit_code == code
    has_data = code in {ExitCode.OK, ExitCode.UNHEALTHY}
    assert bool(ran.out) == has_data, "a failure prints no data"
    if code is ExitCode.OK:
        assert ran.err == ""
    else:
        assert re.fullmatch(r"jupiterctl: error: .+\n\nhint: .+\n", ran.err), ran.err


def test_without_a_daemon_it_is_3(ctl):
    ran = ctl("status")
    assert (ran.exit_code, ran.out) == (ExitCode.UNREACHABLE, "")


def test_ctrl_c_is_130_and_says_nothing_more(daemon, ctl, monkeypatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jupiterd.ctl.calls.answer_to", interrupt)
    ran = ctl("status")
    assert (ran.exit_code, ran.out, ran.err.strip()) == (ExitCode.INTERRUPTED, "", "")
