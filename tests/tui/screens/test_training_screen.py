"""The Training screen as people use it: its keys, and what it asks the daemon for."""

from contextlib import asynccontextmanager

import pytest

from jupiterd.client.watch import Delta, Snapshot
from tests.support.tui import training_documents as training
from tests.support.tui.documents import cycle, messages
from tests.support.tui.pictures import StillTui, until


@asynccontextmanager
async def opened(size=(120, 60), *changes, **options):
    app = StillTui(**options)
    async with app.run_test(size=size) as pilot:
        for message in (*messages(), *changes):
            app.take_status(message)
        for noun, message in training.told():
            app.take_document(noun, message)
        await pilot.press("2")
        app.flush()
        yield pilot


async def test_x_shows_the_loss_over_steps_tokens_and_time():
    async with opened() as pilot:
        await until(pilot, lambda text: "step 1 " in text and "step 477" in text)
        await pilot.press("x")
        await until(pilot, lambda text: "3.91 M tokens" in text)
        await pilot.press("x")
        await until(pilot, lambda text: "2 min 29 s" in text)
        await pilot.press("x")
        await until(pilot, lambda text: "step 1 " in text)


async def test_l_makes_the_scale_logarithmic_and_back():
    async with opened((160, 60)) as pilot:
        await pilot.press("l")
        await until(pilot, lambda text: "log y" in text)
        await pilot.press("l")
        await until(pilot, lambda text: "log y" not in text)


@pytest.mark.parametrize(("key", "words"), [("plus", "(0.97)"), ("minus", "(0.6)")])
async def test_plus_and_minus_smooth_the_loss(key: str, words: str):
    async with opened() as pilot:
        await until(pilot, lambda text: "(0.9)" in text)
        await pilot.press(key)
        await until(pilot, lambda text: words in text)


async def test_without_smoothing_the_loss_is_drawn_as_it_is():
    async with opened() as pilot:
        await pilot.press("minus", "minus")
        await until(pilot, lambda text: "smoothed 2" not in text and "last 3.022" in text)


async def test_the_screen_asks_for_what_it_shows_and_for_nothing_else():
    async with opened() as pilot:
        nouns = [source.noun for source in pilot.app.screen.sources]
        assert nouns == [
            f"{kind}/{training.RUN}" for kind in ("curve", "checkpoints", "completions")
        ]
        pilot.app.take_status(training.of_islands())
        assert f"outer_rounds/{training.RUN}" in [s.noun for s in pilot.app.screen.sources]
        pilot.app.take_status(Delta({"cycle": cycle(kind="train", islands=[])}))
        assert len(pilot.app.screen.sources) == 2
        pilot.app.take_status(Delta({"cycle": None, "train": None}))
        assert pilot.app.screen.sources == ()


async def test_a_round_that_is_over_keeps_its_whole_curve_until_the_next_one_trains():
    async with opened((200, 60)) as pilot:
        before = await until(pilot, lambda text: "held out 2.700" in text)
        caption = next(line for line in before.splitlines() if "smoothed 2" in line)
        pilot.app.take_status(Delta({"cycle": cycle(round=3, phases=[], step=0)}))
        nothing = training.curve() | {"curve": {"run": training.RUN, "round": 3, "points": []}}
        pilot.app.take_document(f"curve/{training.RUN}", Snapshot(nothing))
        pilot.app.flush()
        after = await until(pilot, lambda text: "3 of 2" in text)
        assert caption.split("││")[-1] in after
        running = {"round": 3, "phase": "train", "state": "running", "done": 4}
        row = running | {"values": {"loss": 7.5}}
        pilot.app.take_status(Delta({"cycle": cycle(round=3, phases=[row])}))
        pilot.app.flush()
        await until(pilot, lambda text: "round 3  smoothed 7.500" in text)


async def test_islands_are_shown_only_where_there_are_some():
    async with opened() as pilot:
        await until(pilot, lambda text: "Checkpoints" in text and "island 1" not in text)
        pilot.app.take_status(training.of_islands())
        pilot.app.flush()
        await until(pilot, lambda text: "Islands" in text and "(missing)" in text)


async def test_a_large_terminal_has_a_large_chart():
    def lines_of(text: str) -> int:
        return sum("┤" in line for line in text.splitlines())

    async with opened((200, 60)) as pilot:
        large = lines_of(await until(pilot, lambda text: "smoothed" in text))
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda text: 5 < lines_of(text) < large)
