"""A join token is read where no other user of the machine sees it."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupiterd.cluster.ledger.tokens import PREFIX, Token
from jupiterd.errors import UsageError
from jupiterd.ids import ClusterId
from jupiterd.token_input import token_from

TOKEN = str(Token(ClusterId("c" * 32), "1" * 16, "2" * 32))


def test_a_token_on_a_command_line_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="could read a token on a command line") as refused:
        token_from(TOKEN, "--join")
    assert refused.value.hint == "--join - asks for it, and --join FILE reads it from a file"
    assert TOKEN not in refused.value.message


def test_a_mistyped_one_is_refused_as_well(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="on a command line"):
        token_from(PREFIX.upper() + "abc", "--token")
    with pytest.raises(UsageError, match=r"absent: No such file"):
        token_from(str(tmp_path / "absent"), "--token")


def test_a_file_and_the_standard_input_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text(f"  {TOKEN}\n")
    assert token_from(str(tmp_path / "token"), "--join") == TOKEN
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\nmore\n"))
    assert token_from("-", "--join") == TOKEN


def test_the_whole_command_takes_no_token_either() -> None:
    command = (sys.executable, "-m", "jupiterd.daemon.app.main", "--local", "--join", TOKEN)
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "could read a token on a command line" in ran.stderr
