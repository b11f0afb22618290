"""The screen of cycles: history, explanations, and what people can tell a cycle."""

from contextlib import asynccontextmanager

import pytest

from jupiter_tui.drawings.cycles import cycles
from jupiter_tui.drawings.pages import answered, explained
from jupiter_tui.drawings.primitives.lines import Tone
from jupiter_tui.drawings.primitives.listing import Choice
from jupiter_tui.drawings.review import review
from jupiter_tui.screens.cycles import CyclesScreen
from jupiterd.client.watch import Link, LinkChanged, Snapshot
from tests.support.tui import gallery
from tests.support.tui.documents import RECORDED, scene
from tests.support.tui.pictures import StillTui, until

KEYS = CyclesScreen.KEYS
CANDIDATE = "ab" * 32
PAUSED = {"name": "node-1", "at": "2026-01-01T12:00:00+00:00", "reason": "waits after filter",
          "asks": True, "edit": 3}  # fmt: skip
CYCLES = {
    "schema": "jupiter/v1",
    "cycles": [
        {"id": "763030ddd296e43a", "domain": "python", "state": "paused", "rounds": 2,
         "rounds_done": 1, "val_bpb": 2.1477, "self_hosting": 0.43, "paused": PAUSED,
         "verdicts": [{"round": 1, "verdict": "HOLD", "candidate": CANDIDATE, "val_bpb": 2.1477,
                       "reason": "not shown to be better"}]},
        {"id": "0123456789abcdef", "domain": "chemistry", "state": "finished", "rounds": 1,
         "rounds_done": 0, "val_bpb": None, "self_hosting": None, "paused": None, "verdicts": []},
    ],
}  # fmt: skip
VERDICT = {"verdict": {"verdict": "HOLD", "explained": ["Round 1: HOLD.", "  G1 was not sure."]}}
REVIEW = {
    "review": {
        "domain": "python", "round": 1, "phase": "filter", "in": 649, "out": 576, "detail": "",
        "dropped": {"duplicate": 1, "generated": 69},
        "kept_samples": [{"id": "aa" * 32, "source_uri": "a.py", "reason": "",
                          "text": "kept\x1b[2J text"}],
        "dropped_samples": [{"id": "bb" * 32, "source_uri": "b.py", "reason": "generated",
                             "text": "dropped"}],
        "settings": {"mix_ratio.synthetic_share": "0.4"},
    }
}  # fmt: skip


@asynccontextmanager
async def opened(**options):
    """Open the screen of cycles; what its sources tell is told by the test."""
    app = StillTui(**options)
    async with app.run_test(size=(120, 40)) as pilot:
        app.take_status(LinkChanged(Link.LIVE))
        app.take_status(Snapshot(RECORDED))
        app.take_document("cycles", Snapshot(CYCLES))
        await pilot.press("4")
        app.flush()
        yield app, pilot


def _scene(noun, document):
    return scene(LinkChanged(Link.LIVE), Snapshot(RECORDED), others={noun: Snapshot(document)})


def _text(lines) -> list[str]:
    return ["".join(cell.text for cell in made) for made in lines]


def test_each_cycle_has_its_verdicts_below_it():
    listing = cycles(_scene("cycles", CYCLES), Choice(), 118)
    assert [row.key for row in listing.rows] == [
        "cycle:763030ddd296e43a", f"verdict:{CANDIDATE}", "cycle:0123456789abcdef",
    ]  # fmt: skip
    first, verdict, other = _text(row.line for row in listing.rows)
    assert "python 763030dd" in first
    assert "43%" in first
    assert "A answers" in first
    assert "HOLD" in verdict
    assert "not shown to be better" in verdict
    assert "N/A" in other, "nothing was measured, which isn't 0"


def test_before_the_first_cycle_it_says_how_to_start_one():
    listing = cycles(_scene("cycles", {"cycles": []}), Choice(), 118)
    assert "N starts one" in _text(listing.foot)[0]


def test_an_explanation_is_wrapped_and_begins_with_the_verdict_s_colour():
    long = VERDICT | {"verdict": {"verdict": "REJECT", "explained": ["word " * 30]}}
    lines = explained(_scene("verdict/x", long), 40, "verdict/x")
    assert len(lines) > 3
    assert max(map(len, _text(lines))) <= 40
    assert lines[0][0].tone is Tone.BAD


def test_answers_stand_below_an_explanation_and_can_not_steer_the_terminal():
    shown = gallery.VERDICT["verdict"] | {"explained": []}
    lines = answered(_scene("verdict/x", {"verdict": shown}), 100, "verdict/x")
    text = "\n".join(_text(lines))
    assert "The smallest item?[2J." in text
    assert "(ends at once)" in text
    assert max(map(len, _text(lines))) <= 100
    assert answered(_scene("verdict/x", VERDICT), 100, "verdict/x") == ()  # an older daemon's


def test_samples_of_a_review_can_not_steer_the_terminal():
    text = "\n".join(_text(review(_scene("review/x", REVIEW), 100, "review/x")))
    assert "kept?[2J text" in text
    assert text.index("69 generated") < text.index("1 duplicate")


@pytest.mark.parametrize("drawing", [explained, review])
def test_what_can_not_be_had_says_why(drawing):
    shown = scene(others={"x": LinkChanged(Link.LOST, "nobody in reach has it")})
    assert _text(drawing(shown, 80, "x")) == ["nobody in reach has it"]


async def test_enter_explains_a_verdict_and_escape_goes_back():
    async with opened() as (app, pilot):
        await until(pilot, lambda text: "> python 763030dd" in text)
        await pilot.press("down", "enter")
        app.take_document(f"verdict/{CANDIDATE}", Snapshot(VERDICT))
        app.flush()
        await until(pilot, lambda text: "G1 was not sure." in text)
        await pilot.press("escape")
        await until(pilot, lambda text: "python 763030dd" in text)


@pytest.mark.parametrize(
    ("key", "command"),
    [
        ("P", "jupiterctl cycle pause 763030dd"),
        ("R", "jupiterctl cycle resume 763030dd"),
        ("X", "jupiterctl cycle stop 763030dd"),
        ("B", "jupiterctl cycle rollback 763030dd"),
        ("E", "jupiterctl cycle extend 763030dd --rounds 1"),
        ("D", "jupiterctl cycle dismiss 763030dd"),
    ],
)
async def test_a_key_asks_about_the_chosen_cycle_by_name(key, command):
    async with opened() as (_, pilot):
        await pilot.press(key)
        text = await until(pilot, lambda text: command in text)
        assert "cycle 763030dd of python?" in text


async def test_a_cycle_that_waits_is_answered_with_a_changed_setting():
    async with opened() as (app, pilot):
        await pilot.press("A")
        app.take_document("review/763030ddd296e43a", Snapshot(REVIEW))
        app.flush()
        await until(pilot, lambda text: "filter has ended" in text)
        await pilot.press("E", *"a.b=1", "enter", "D")
        command = "jupiterctl cycle resume 763030dd --redo --set a.b=1"
        await until(pilot, lambda text: command in text)


async def test_a_cycle_is_started_from_a_form():
    async with opened() as (_, pilot):
        await pilot.press("N")
        text = await until(pilot, lambda text: "chemistry" in text and "rounds" in text)
        assert "unreal_engine" in text, "all domains are named"
        assert "[ ] wait for an answer" in text
        await pilot.press("shift+tab", "shift+tab", "space")
        await until(pilot, lambda text: "[X] wait for an answer" in text)
        await pilot.press("space", "tab", "tab", "enter")
        await until(pilot, lambda text: "cycle start --domain python --size 1m" in text)


async def test_a_dashboard_that_only_reads_offers_and_does_none_of_it():
    async with opened(is_readonly=True) as (app, pilot):
        text = await until(pilot, lambda text: "python 763030dd" in text)
        footer = text.splitlines()[-1]
        assert not [key for key in KEYS if key.changes and f"{key.shown} {key.label}" in footer]
        await pilot.press("N", "P", "R", "X", "B", "A")
        assert len(app.screen_stack) == 1
