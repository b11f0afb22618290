"""Which lines are commands of a conversation."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.ctl.chat.slash_commands import (
    ALIASES,
    COMMANDS,
    SlashCommand,
    as_text,
    completions,
    help_lines,
    slash_command,
)
from jupiterd.errors import UsageError


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/help", SlashCommand("help")),
        ("/?", SlashCommand("help")),
        ("  /bye ", SlashCommand("quit")),
        ("/system be brief, please", SlashCommand("system", "be brief, please")),
        ("/System  x ", SlashCommand("system", "x")),
        ("/load python/2", SlashCommand("model", "python/2")),
        ("/temperature 0.7", SlashCommand("temperature", "0.7")),
        ("/save talk.md", SlashCommand("save", "talk.md")),
    ],
)
def test_commands_are_found(line, command):
    assert slash_command(line) == command


@pytest.mark.parametrize(
    "line",
    ["", "hello", "what does /help do?", "/usr/bin is where?", "/* a comment", "// help", "//help",
     "/", "/2 is a half", "/help\nand more"],
)  # fmt: skip
def test_other_lines_are_text_for_the_model(line):
    assert slash_command(line) is None


def test_two_slashes_send_one():
    assert as_text("//help") == "/help"
    assert as_text("a // b") == "a // b"


def test_a_command_that_isnt_there_is_told_with_the_nearest():
    with pytest.raises(UsageError) as caught:
        slash_command("/sytem be brief")
    assert caught.value.message == "there is no command /sytem"
    assert caught.value.hint.startswith("did you mean /system?")
    with pytest.raises(UsageError) as caught:
        slash_command("/zzz")
    assert caught.value.hint == "/help lists all; // sends a text that begins with a slash"


def test_a_command_that_lacks_something_says_what():
    with pytest.raises(UsageError, match="/save needs FILE"):
        slash_command("/save")


def test_every_alias_leads_to_a_command_and_the_help_names_each():
    assert set(ALIASES.values()) <= set(COMMANDS)
    text = "\n".join(help_lines())
    assert all(f"/{name}" in text for name in COMMANDS)
    assert max(map(len, help_lines())) < 100


def test_words_are_completed():
    assert completions("/s") == ["/system", "/set", "/show", "/save"]
    assert completions("s") == []


@given(st.text())
def test_no_line_is_worse_than_a_command_that_isnt_there(line):
    with suppress(UsageError):
        command = slash_command(line)
        assert command is None or command.name in COMMANDS
