"""A conversation at a real terminal: a pty, a process, and keys."""

import stat

import pytest

from tests.support.ctl.chat_server import HOLD, Served, chat_server
from tests.support.ctl.chat_terminal import chat_terminal

CTRL_C, CTRL_D = b"\x03", b"\x04"
CHINESE = "\u4f60\u597d, the left one"
SOON_S = 5.0
BASE = {"chat": False, "context_tokens": 64, "node": "nuc", "engine": "mlx", "loaded": False}


def echo(body):
    return ["you said ", body["messages"][-1]["content"].replace("\n", "|")]


@pytest.fixture
def server(state_dir):
    with chat_server(state_dir, echo=Served(echo)) as server:
        yield server


def test_a_conversation_with_commands_is_remembered(state_dir, server):
    with chat_terminal(state_dir, "echo", "--system", "be brief") as terminal:
        terminal.until(lambda shown: "echo chats" in shown and ">>>" in shown)
        terminal.press(b"hello\r")
        terminal.until(lambda shown: "you said hello" in shown and "2 tokens" in shown)
        terminal.press(b'"""one\rtwo"""\r')
        terminal.until(lambda shown: "you said one|two" in shown)
        terminal.press(b"/undo\r")
        terminal.until(lambda shown: "forgotten: one" in shown and "1 question left" in shown)
        terminal.press(b"/nonsense\r")
        terminal.until(lambda shown: "there is no command /nonsense" in shown)
        terminal.press(b"/again\r")
        terminal.until(lambda shown: shown.count("you said hello") == 2)
        terminal.press(b"/quit\r")
        assert terminal.ended() == 0
    told = [[each["content"] for each in body["messages"]] for body in server.bodies()]
    assert told == [
        ["be brief", "hello"],
        ["be brief", "hello", "you said hello", "one\ntwo"],
        ["be brief", "hello"],
    ]
    history = state_dir / "chat_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert history.read_text().splitlines()[0] == '"hello"'
    with chat_terminal(state_dir, "echo") as terminal:  # the next one begins with the last line
        terminal.until(lambda shown: ">>>" in shown)
        terminal.press(b"\x1b[A")
        terminal.until(lambda shown: ">>> /quit" in shown)
        terminal.press(b"\x15" + CTRL_D)
        assert terminal.ended() == 0


@pytest.mark.full
def test_another_promoted_model_is_told_in_the_midst_of_a_conversation(state_dir, server):
    server.models["promoted"].jupiter = {"chat": True, "name": "python/2"}
    with chat_terminal(state_dir) as terminal:
        terminal.until(lambda shown: "promoted (python/2) chats" in shown and ">>>" in shown)
        server.models["promoted"].jupiter = {"chat": True, "name": "python/3"}
        terminal.press(b"hello\r")
        terminal.until(lambda shown: "promoted is python/3 by now, and was python/2" in shown)
        terminal.until(lambda shown: shown.count(">>>") == 2)
        terminal.press(CTRL_D)
        assert terminal.ended() == 0


def test_ctrl_c_stops_an_answer_and_leaves_at_the_prompt(state_dir, server):
    server.models["slow"] = Served(lambda _: ["a beginning", HOLD, " never"], BASE)
    with chat_terminal(state_dir, "slow") as terminal:
        terminal.until(lambda shown: "slow completes what you type on nuc (mlx)" in shown)
        terminal.press(b"def f(\r")
        terminal.until(lambda shown: "a beginning" in shown)
        terminal.press(CTRL_C)
        terminal.until(lambda shown: "stopped" in shown and shown.count(">>>") == 2)
        assert server.gone.wait(SOON_S)
        terminal.press(b"/model echo\r")
        terminal.until(lambda shown: "echo chats" in shown)
        terminal.press(b"still here\r")
        terminal.until(lambda shown: "you said still here" in shown and shown.count(">>>") == 4)
        terminal.press(b"half a line")
        terminal.until(lambda shown: "half a line" in shown)
        terminal.press_until(
            CTRL_C, lambda shown: shown.count("Ctrl-C again, or Ctrl-D, leaves") == 2
        )
        terminal.until(lambda shown: shown.count(">>>") == 5)
        terminal.press_until(CTRL_C, lambda _: terminal.process.poll() is not None)
        assert terminal.ended() == 0
    assert b"Traceback" not in terminal.seen
    # The model that answered next was told what the other one had written until it was stopped.
    assert server.bodies()[1]["messages"][1] == {"role": "assistant", "content": "a beginning"}


def test_what_is_waited_for_is_said_and_erased(state_dir, server):
    server.models["slow"] = Served(lambda _: [HOLD, "at last"], BASE)
    with chat_terminal(state_dir, "slow", "def f(") as terminal:
        terminal.until(lambda shown: "loading slow on nuc..." in shown)
        server.go.set()
        shown = terminal.until(lambda shown: "at last" in shown)
        assert "loading" not in shown
        assert terminal.ended() == 0
    assert "1 token" in terminal.screen.text


@pytest.mark.full
def test_ctrl_c_ends_a_single_answer_with_130(state_dir, server):
    server.models["slow"] = Served(lambda _: ["a beginning", HOLD], BASE)
    with chat_terminal(state_dir, "slow", "def f(") as terminal:
        terminal.until(lambda shown: "a beginning" in shown)
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
        assert server.gone.wait(SOON_S)


def test_two_answers_stand_side_by_side_while_both_are_written(state_dir, server):
    def left(_):
        yield f"{CHINESE}\nis first\n"
        yield HOLD
        yield "and last"

    server.models["tuned"] = Served(left, {"chat": True})
    server.models["tuned/base"] = Served(
        lambda _: ["the right ", "one is\x1b[2J ready"], {"chat": True}
    )
    with chat_terminal(state_dir, "tuned", "hi there", "--beside", "base", columns=70) as terminal:
        shown = terminal.until(lambda shown: "ready" in shown and "is first" in shown)
        rows = [row.rstrip() for row in shown.splitlines() if row.strip()]
        # A wide character takes two places of the grid, one of them empty.
        assert rows[:3] == [
            f"{'tuned':<33} \u2502 base",
            f"{CHINESE:<31} \u2502 the right one is?[2J ready",
            f"{'is first':<33} \u2502",
        ]
        server.go.set()
        assert terminal.ended() == 0
    assert f"{'and last':<33} \u2502" in terminal.screen.text
    assert "tuned: 2 tokens" in terminal.screen.text
    assert "base: 2 tokens" in terminal.screen.text


@pytest.mark.full
def test_columns_that_are_longer_than_the_screen_are_whole_in_the_end(state_dir, server):
    many = "".join(f"row {number}\n" for number in range(30))
    server.models["tuned"] = Served(lambda _: [many])
    server.models["tuned/base"] = Served(lambda _: [*(f"{n}\n" for n in range(25)), "end"])
    arguments = ("tuned", "hi there", "--beside", "base")
    with chat_terminal(state_dir, *arguments, columns=70, lines=60) as terminal:
        assert terminal.ended() == 0
    rows = terminal.screen.text.splitlines()
    assert [row.split()[1] for row in rows[1:31]] == [str(number) for number in range(30)]
    assert rows[26].split() == ["row", "25", "\u2502", "end"]


@pytest.mark.full
def test_on_a_narrow_terminal_one_stands_below_the_other(state_dir, server):
    server.models["base"] = Served(lambda _: ["from the base"])
    arguments = ("hi there", "--beside", "base")
    with chat_terminal(state_dir, *arguments, columns=40) as terminal:
        assert terminal.ended() == 0
    shown = terminal.screen.text
    assert shown.index("promoted:") < shown.index("hello there") < shown.index("base:")
    assert shown.index("base:") < shown.index("from the base")
