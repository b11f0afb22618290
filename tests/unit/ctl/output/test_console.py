"""What the console writes: whose commands are completed with the options of the user's own."""

import pytest

from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.errors import ConflictError

SAID = "follow it with: jupiterctl cycle watch"
TYPEABLE = "follow it with: jupiterctl --state-dir /mine cycle watch"


@pytest.fixture
def console() -> Console:
    return Console.of(Invocation(named_state_dir="/mine"))


def test_a_command_in_any_line_reaches_the_daemon_that_was_named(
    console: Console, capsys: pytest.CaptureFixture[str]
):
    console.line(SAID)
    console.passing_line(SAID)
    console.show({}, lambda: [SAID])
    assert capsys.readouterr().out.splitlines() == [TYPEABLE] * 3


def test_so_does_one_in_a_notice_and_in_a_hint(
    console: Console, capsys: pytest.CaptureFixture[str]
):
    console.notice(SAID)
    console.error(ConflictError("it runs", SAID))
    told = capsys.readouterr().err
    assert told == f"jupiterctl: {TYPEABLE}\njupiterctl: error: it runs\n\nhint: {TYPEABLE}\n"


def test_other_peoples_text_and_documents_stay_as_they_are(
    console: Console, capsys: pytest.CaptureFixture[str]
):
    console.line(SAID, is_quoted=True)
    console.output = "jsonl"
    console.show({"said": SAID}, list)
    assert capsys.readouterr().out == f'{SAID}\n{{"said":"{SAID}"}}\n'


def test_without_the_option_nothing_is_added(capsys: pytest.CaptureFixture[str]):
    Console().line(SAID)
    assert capsys.readouterr().out == f"{SAID}\n"
