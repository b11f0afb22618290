"""What must not end the dashboard, or let it show what no longer holds."""

import math
import stat

import pytest

from jupiter_tui.actions import execution, machine_actions
from jupiter_tui.drawings import topology
from jupiter_tui.drawings.bits_per_byte import bits
from jupiter_tui.drawings.header import banner
from jupiter_tui.drawings.primitives.lines import in_ascii
from jupiter_tui.drawings.primitives.thresholds import NOTHING
from jupiter_tui.drawings.readings import readings
from jupiter_tui.model.loss_view import Look
from jupiter_tui.model.recorder import Recorder
from jupiter_tui.widgets.panel import Panel
from jupiterd.client.watch import Link, LinkChanged, Snapshot
from tests.support.tui.documents import RECORDED, cycle, of, scene, status
from tests.support.tui.pictures import StillTui, shown, until
from tests.tui.screens.test_actions import STOP

LIVE = LinkChanged(Link.LIVE)


def _text(lines) -> str:
    return "\n".join("".join(cell.text for cell in made) for made in lines)


def _with_verdicts(*verdicts):
    return of(status(cycle=cycle(verdicts=list(verdicts))))


async def test_brackets_in_a_filter_are_brackets():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        app.take_status(LIVE)
        app.take_status(Snapshot(RECORDED))
        app.flush()
        await pilot.press("slash", "left_square_bracket", "slash")
        assert "filter: [/" in await until(pilot, lambda text: "filter: [/" in text)


@pytest.mark.parametrize("wrong", [math.inf, math.nan])
def test_a_model_without_a_finite_score_is_not_compared(wrong):
    good = {"round": 1, "verdict": "PROMOTE", "val_bpb": 2.1, "incumbent_bpb": 2.8}
    bad = {"round": 2, "verdict": "REJECT", "val_bpb": wrong, "incumbent_bpb": 2.1}
    assert "not compared" in _text(bits(_with_verdicts(good, bad), 80, 20))
    lone = bad | {"val_bpb": 2.0, "lower_bound_bpb": wrong, "margin_bpb": wrong}
    assert "REJECT" in _text(bits(_with_verdicts(good, lone), 80, 20))


async def test_a_drawing_that_fails_takes_its_own_part_of_the_screen_and_no_more(monkeypatch):
    monkeypatch.setattr(Panel, "FORGIVES", True)
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        app.take_status(LIVE)
        app.take_status(Snapshot(RECORDED))
        app.take_document("links", Snapshot({"links": [{"nodes": 5, "kind": "wifi"}]}))
        app.flush()
        text = await until(pilot, lambda text: "can't be drawn: unexpected TypeError" in text)
        assert "node-1" in text


def test_what_is_no_longer_told_is_said_to_be_of_then():
    broken = scene(LIVE, Snapshot(RECORDED), others={"links": Snapshot({"links": []})})
    assert not banner(broken, 80, 1)
    others = {"links": LinkChanged(Link.LOST, "no node answers", 1.0)}
    assert not banner(scene(LIVE, Snapshot(RECORDED), others=others), 80, 1)


async def test_a_part_that_has_lost_its_source_says_since_when_on_a_live_link():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        app.take_status(LIVE)
        app.take_status(Snapshot(RECORDED))
        app.take_document("links", Snapshot({"links": []}))
        app.take_document("links", LinkChanged(Link.LOST, "the leader doesn't answer", 1.0))
        app.flush()
        words = "part of this screen is as of 12:03:41: the leader doesn't answer"
        await until(pilot, lambda text: words in text)
        app.take_document("links", Snapshot({"links": []}))
        app.flush()
        await until(pilot, lambda text: words not in text)


async def test_a_screen_that_is_opened_while_the_picture_is_held_shows_what_there_is():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        app.take_status(LIVE)
        app.take_status(Snapshot(RECORDED))
        await pilot.press("p", "5")
        row = {"at": "2026-11-23 12:00:00", "level": "info", "code": "x", "text": "a cable came"}
        app.take_document("events", Snapshot({"events": [row]}))
        app.flush()
        assert "paused" in await until(pilot, lambda text: "a cable came" in text)
        assert "nothing heard yet" not in shown(app)


async def test_a_change_that_takes_too_long_is_told(monkeypatch, short_dir):
    monkeypatch.setattr(execution, "TIMEOUT_S", 0.0)
    told, is_done = await execution.carried_out(short_dir, STOP)
    assert (told, is_done) == (
        "it didn't end within 0.0 s: jupiterctl cycle stop 3f2a91bc",
        False,
    )


async def test_a_change_that_cannot_be_run_is_told(monkeypatch, short_dir):
    monkeypatch.setattr(execution.sys, "executable", str(short_dir / "nothing"))
    told, is_done = await execution.carried_out(short_dir, STOP)
    assert not is_done
    assert "couldn't be run: No such file" in told


def test_an_approval_carries_the_words_that_were_compared():
    node = {"id": "b06e04e2" * 4, "name": "new", "words": "radar canvas tiny plug"}
    action = machine_actions.approve(node)
    assert action is not None
    assert action.typed == "jupiterctl node approve b06e04e2 --words 'radar canvas tiny plug'"
    assert machine_actions.approve(node | {"words": ""}) is None


def test_a_step_that_nobody_knows_is_not_0():
    shown_lines = _text(readings(Look(), of(status(cycle=cycle(step=None))), 100, 20))
    step = next(each for each in shown_lines.splitlines() if each.startswith("step"))
    assert NOTHING.text in step


def test_every_kind_of_link_can_be_drawn_in_ascii():
    for sign, _ in topology.SIGNS.values():
        assert "?" not in in_ascii(sign)


def test_a_recording_is_its_owner_s_alone(tmp_path):
    Recorder(tmp_path / "run.jsonl")
    assert stat.S_IMODE((tmp_path / "run.jsonl").stat().st_mode) == 0o600
