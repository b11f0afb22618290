"""The panel of what is wrong."""

from jupiter_tui.drawings.health import health
from tests.support.tui.documents import of, status

GONE = {
    "code": "node-gone", "severity": "warning", "title": "beta is gone", "hint": "wake it",
    "age_s": 250,
}  # fmt: skip


def shown(width: int, **more: object) -> list[str]:
    lines = health(of(status(**{"health": [GONE], **more})), width, 12)
    return ["".join(cell.text for cell in line) for line in lines]


def test_each_line_says_how_grave_it_is_what_for_how_long_and_what_to_do():
    assert shown(80) == [
        "warning  beta is gone  node-gone for 4 min 10 s",
        "         hint: wake it",
    ]


def test_code_and_age_are_read_on_a_narrow_screen_too():
    assert shown(40) == [
        "warning  beta is gone",
        "         node-gone for 4 min 10 s",
        "         hint: wake it",
    ]


def test_what_people_have_seen_is_one_faint_line_and_nothing_is_wrong():
    assert shown(80, health=[], dismissed=[GONE]) == [
        "good: nothing is wrong",
        "seen     beta is gone",
    ]
