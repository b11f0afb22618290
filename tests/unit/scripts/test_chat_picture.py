"""The picture of a conversation shows what stands on the terminal."""

import runpy
import tempfile
from pathlib import Path

import pytest

from tests.support.ctl.chat_server import Served, chat_server

PICTURE = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "chat_picture.py"))


@pytest.mark.full
def test_both_answers_and_the_command_are_on_it(tmp_path: Path) -> None:
    out = tmp_path / "picture.svg"
    with (
        tempfile.TemporaryDirectory(prefix="jt-", dir="/tmp") as folder,
        chat_server(Path(folder), base=Served(lambda _: ["from the base"])),
    ):
        words = ("--state-dir", folder, "--beside", "base", "--out", str(out))
        assert PICTURE["main"]([*words, "--ask", "how are you"]) == 0
    picture = out.read_text().replace("&#160;", " ")
    assert "jupiterctl model chat promoted --beside base" in picture
    for words in ("how are you", "hello there", "from the base", "2 tokens"):
        assert words in picture
    assert picture.count("&gt;&gt;&gt;") == 1, "the empty prompt at the end is left out"
