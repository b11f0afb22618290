"""The screen of the text: counts of each phase, samples, and where one comes from."""

from contextlib import asynccontextmanager

from jupiter_tui.drawings.flow import flow
from jupiter_tui.drawings.pages import provenance
from jupiter_tui.drawings.phases import START
from jupiter_tui.drawings.primitives.listing import Choice
from jupiter_tui.drawings.samples import samples
from jupiterd.client.watch import Link, LinkChanged, Snapshot
from tests.support.tui.documents import RECORDED, cycle, of, scene, status
from tests.support.tui.pictures import StillTui, until
from tests.tui.screens.test_cycles_screen import REVIEW

FILTERED = "review/763030ddd296e43a/2/filter"
COLLECTED = "review/763030ddd296e43a/1/collect"
WHY = {"why": {"sample": {"id": "aa" * 32, "kind": "real", "text_bytes": 7, "license": "MIT",
                          "source_uri": "a.py", "text_begins": "kept\x1b[2J"}}}  # fmt: skip


@asynccontextmanager
async def opened():
    """Open the screen; what its sources tell is told by the test."""
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        app.take_status(LinkChanged(Link.LIVE))
        app.take_status(Snapshot(RECORDED))
        app.take_document(FILTERED, Snapshot(REVIEW))
        await pilot.press("3")
        app.flush()
        yield app, pilot


def _text(lines) -> list[str]:
    return ["".join(cell.text for cell in made) for made in lines]


def test_each_phase_says_what_went_in_what_came_out_and_why_some_did_not():
    phases = [
        {"round": 1, "phase": "filter", "state": "done", "in": 1649, "out": 576,
         "dropped": {"generated": 1069, "duplicate": 4}, "detail": "kept 576 real"},
        {"round": 1, "phase": "train", "state": "running"},
        {"round": 1, "phase": "pack", "state": "waiting", "in": None, "out": None, "dropped": {}},
    ]  # fmt: skip
    titles, filtered, packed = _text(flow(of(status(cycle=cycle(phases=phases))), 140, 9))
    assert "DROPPED" in titles
    assert "1,649" in filtered
    assert "1,073: generated 1,069, duplicate 4" in filtered
    assert "N/A" in packed


def test_a_phase_that_dropped_more_than_half_says_so_below():
    phases = [{"round": 1, "phase": "filter", "state": "done", "in": 200, "out": 12}]
    told = "filter dropped 188 of 200 texts (94 %): few-letters 180, symbols 6"
    drops = [{"round": 1, "told": told}]
    lines = _text(flow(of(status(cycle=cycle(phases=phases, heavy_drops=drops))), 140, 9))
    assert lines[-1] == f"round 1 {told}"


def test_without_a_cycle_there_is_nothing_to_count():
    told, how = _text(flow(of(status(cycle=None)), 120, 9))
    assert told == "no cycle has collected anything yet"
    assert "4 and then N" in how
    assert START in how


def test_kept_samples_stand_before_dropped_ones_with_their_reason():
    shown = scene(others={FILTERED: Snapshot(REVIEW)})
    listing = samples(shown, Choice(), 140, FILTERED)
    kept, dropped = _text(row.line for row in listing.rows)
    assert "kept" in kept
    assert "kept?[2J text" in kept, "no sample steers the terminal"
    assert "generated" in dropped


def test_a_sample_is_told_with_its_whole_chain():
    lines = _text(provenance(scene(others={"why/x": Snapshot(WHY)}), "why/x"))
    assert any("MIT" in each for each in lines)
    assert not any("\x1b" in each for each in lines)


async def test_enter_tells_where_the_chosen_sample_comes_from():
    async with opened() as (app, pilot):
        text = await until(pilot, lambda text: "Samples of round 2, filter" in text)
        assert "> aaaaaaaa" in text
        await pilot.press("enter")
        app.take_document(f"why/{'aa' * 32}", Snapshot(WHY))
        app.flush()
        await until(pilot, lambda text: "licence" in text and "MIT" in text)


async def test_left_and_right_go_through_the_phases():
    async with opened() as (app, pilot):
        await until(pilot, lambda text: "round 2, filter" in text)
        await pilot.press("left")
        await until(pilot, lambda text: "round 2, generate" in text)
        await pilot.press(*["left"] * 9)
        await until(pilot, lambda text: "round 1, collect" in text)
        assert [source.noun for source in app.screen.sources] == [COLLECTED]
