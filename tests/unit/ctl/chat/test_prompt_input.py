"""Lines of earlier conversations."""

import stat

import pytest

from jupiterd.ctl.chat import prompt_input
from jupiterd.ctl.chat.prompt_input import HISTORY, MOST_LINES, PromptInput
from jupiterd.errors import UsageError


@pytest.fixture
def typed(monkeypatch):
    """Answer each prompt with the next of these lines, as readline would keep it."""
    lines: list[str | BaseException] = []

    def read(_prompt: str) -> str:
        import readline

        line = lines.pop(0)
        if isinstance(line, BaseException):
            raise line
        readline.add_history(line)
        return line

    monkeypatch.setattr("builtins.input", read)
    return lines


def kept(folder):
    return prompt_input._earlier(folder / HISTORY)


def test_lines_are_kept_for_their_user_alone(tmp_path, typed):
    typed += ["one", '"""two', 'lines"""']
    with PromptInput(tmp_path) as prompt:
        assert prompt.ask() == "one"
        assert prompt.ask() == "two\nlines"
        assert prompt.is_literal
    assert kept(tmp_path) == ["one", '"""two', 'lines"""']
    assert stat.S_IMODE((tmp_path / HISTORY).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [HISTORY]


def test_two_conversations_at_a_time_keep_the_lines_of_both(tmp_path, typed):
    typed += ["mine"]
    with PromptInput(tmp_path) as prompt:
        prompt_input._keep(tmp_path / HISTORY, ["of another one"])
        prompt.ask()
    assert kept(tmp_path) == ["of another one", "mine"]


def test_only_the_newest_lines_are_kept(tmp_path, typed):
    prompt_input._keep(tmp_path / HISTORY, [str(number) for number in range(MOST_LINES)])
    typed += ["newest"]
    with PromptInput(tmp_path) as prompt:
        prompt.ask()
    lines = kept(tmp_path)
    assert (len(lines), lines[0], lines[-1]) == (MOST_LINES, "1", "newest")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"no json\n", b'[1]\n"ok"\n', b'"a\\u0000b"\n'])
def test_a_file_that_somebody_else_wrote_does_no_harm(tmp_path, typed, content):
    (tmp_path / HISTORY).write_bytes(content)
    typed += [EOFError()]
    with PromptInput(tmp_path) as prompt, pytest.raises(EOFError):
        prompt.ask()


def test_a_folder_that_isnt_there_keeps_nothing(tmp_path, typed):
    typed += ["one"]
    with PromptInput(tmp_path / "nowhere") as prompt:
        assert prompt.ask() == "one"


def test_ctrl_d_ends_a_text_that_was_begun(tmp_path, typed):
    typed += ['"""one', EOFError(), "two\\", EOFError()]
    with PromptInput(tmp_path) as prompt:
        assert prompt.ask() == "one"
        assert prompt.ask() == "two\n"


def test_other_bytes_than_utf_8_are_told(tmp_path, typed):
    typed += [UnicodeDecodeError("utf-8", b"\xe9", 0, 1, "odd")]
    with PromptInput(tmp_path) as prompt, pytest.raises(UsageError, match="isn't UTF-8"):
        prompt.ask()
