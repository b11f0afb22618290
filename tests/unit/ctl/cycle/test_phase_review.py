"""Asking people what becomes of a cycle that waits: words in, one command out."""

import pytest

from jupiterd.ctl.cycle.phase_review import ReviewAnswer, understood
from jupiterd.ctl.output.review_lines import review_lines
from jupiterd.errors import UsageError
from jupiterd.protocol.commands.cycle_commands import ResumeCycle, StopCycle

REVIEW = {
    "round": 1,
    "phase": "filter",
    "in": 900,
    "out": 700,
    "detail": "kept 700 real",
    "dropped": {"duplicate": 120, "no-parse": 80},
    "kept_samples": [
        {
            "id": "a" * 64,
            "source_uri": "https://a.org/x",
            "reason": "",
            "text": "def f():\n\treturn",
        }
    ],
    "dropped_samples": [
        {
            "id": "b" * 64,
            "source_uri": "https://b.org/\x1b[2J",
            "reason": "duplicate",
            "text": "\x1b[31m" + "long " * 100,
        }
    ],
}


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("go on", ReviewAnswer(ResumeCycle())),
        ("", ReviewAnswer(ResumeCycle())),
        ("redo", ReviewAnswer(ResumeCycle(redo="last"))),
        ("redo collect", ReviewAnswer(ResumeCycle(redo="collect"))),
        ("AUTO", ReviewAnswer(ResumeCycle(auto=True))),
        ("stop", ReviewAnswer(StopCycle())),
        ("later", ReviewAnswer(None)),
    ],
)
def test_each_word_is_one_answer(said: str, answer: ReviewAnswer) -> None:
    assert understood(said, {}) == answer


def test_settings_are_collected_until_somebody_goes_on_or_has_it_redone() -> None:
    settings: dict[str, str] = {}
    assert understood("set generation.temperature = 0.5", settings) is None
    assert understood("set filters.quality={like: [a]}", settings) is None
    told = {"generation.temperature": "0.5", "filters.quality": "{like: [a]}"}
    assert understood("redo", settings) == ReviewAnswer(ResumeCycle(redo="last", settings=told))
    assert understood("go on", settings) == ReviewAnswer(ResumeCycle(settings=told))


@pytest.mark.parametrize("said", ["perhaps", "set", "set temperature", "set =1"])
def test_what_is_no_answer_is_refused(said: str) -> None:
    with pytest.raises(UsageError):
        understood(said, {})


def test_what_a_phase_has_made_is_shown_without_steering_the_terminal() -> None:
    lines = review_lines(REVIEW)
    assert lines[:4] == [
        "round 1 filter  in 900, out 700",
        "  kept 700 real",
        "  dropped 200: duplicate 120, no-parse 80",
        "kept, 1 of them:",
    ]
    assert lines[4] == "  aaaaaaaa (https://a.org/x): def f(): return"
    assert lines[6].startswith("  bbbbbbbb (duplicate, https://b.org/?[2J): ?[31mlong long")
    assert len(lines[6]) < 260
    assert all(line.isprintable() for line in lines)


def test_of_a_phase_without_samples_those_of_an_earlier_one_are_shown_as_such() -> None:
    under_way = REVIEW | {"phase": "train", "samples_round": 1, "samples_phase": "filter"}
    lines = review_lines(under_way)
    assert "kept by filter of round 1, 1 of them:" in lines
    assert "dropped by filter of round 1, 1 of them:" in lines


def test_whole_texts_keep_their_lines_and_still_steer_nothing() -> None:
    lines = review_lines(REVIEW, is_whole=True)
    assert lines[4:7] == ["  aaaaaaaa (https://a.org/x):", "    def f():", "    ?return"]
    assert lines[-1].startswith("    ?[31mlong")
    assert all(line.isprintable() for line in lines)
