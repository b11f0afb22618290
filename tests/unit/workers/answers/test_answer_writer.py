"""What is kept of the answers that stand beside a verdict."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupiterd.cycle.generation.asked_prompts import AskedPrompt
from jupiterd.cycle.templates.prompt import WrittenAnswer
from jupiterd.workers.answers import answer_writer
from jupiterd.workers.answers.answer_writer import AskedModel, Asking, answered


class CutShort:
    """An engine whose last token is the first of a character's three bytes."""

    def fits(self, *_: object) -> bool:
        return True

    def write(self, *_: object) -> Iterator[tuple[int, WrittenAnswer]]:
        text = b"\xe4\xbd\xa0\xe5".decode("utf-8", "replace")
        yield 0, WrittenAnswer(text, tokens=64, is_whole=False)


def test_half_of_a_last_character_isnt_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(answer_writer, "engine_of_folder", lambda *_: CutShort())
    model = AskedModel("c" * 64, Path("model"))
    asking = Asking({"candidate": model}, (AskedPrompt("1" * 64, "Why?"),))
    found, trouble = answered(asking, {}, lambda _: None)
    assert (found.written, trouble) == ({model.artifact: ("\u4f60",)}, "")
