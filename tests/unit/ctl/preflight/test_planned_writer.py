"""Who will write, as a plan says it: what the cycle itself comes to."""

import pytest

from jupiterd.ctl.preflight.planned_writer import planned_writer
from tests.unit.cycle.generation.test_usual_templates import domain

CHAT = {"model": "talker", "is_chat": True}
SUMMARY = "generation: {templates: [{kind: summary, samples: 7}]}\n"


@pytest.mark.parametrize(
    ("more", "named", "init", "says"),
    [
        ("", "", CHAT, "talker writes at most 100 samples a round"),
        ("", "", {**CHAT, "is_chat": False}, "nothing is generated"),
        ("", "http://box/v1#oak", CHAT, "oak writes at most 400 samples a round"),
        (SUMMARY, "", CHAT, "the student, once one was promoted, writes at most 7 samples a round"),
        ("generation: {templates: []}\n", "", CHAT, "nothing is generated"),
        ("mix_ratio: {synthetic_share: 0}\n", "", CHAT, "nothing is generated"),
    ],
)
def test_it_is_the_named_generator_the_chat_model_or_the_student(
    more: str, named: str, init: dict[str, object], says: str
):
    assert says in planned_writer(domain("en", more), named, init).line()


def test_answers_to_short_tasks_are_as_long_as_those_end():
    planned = planned_writer(domain("en"), "", CHAT)
    assert (planned.samples, planned.tokens) == (100, 100 * 384)
