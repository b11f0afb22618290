"""Pictures of the dashboard, compared with those that somebody has looked at.

Screens are pictures as SVG, with their colours: in three sizes, and each with what isn't known,
with a stale and with a lost link. Dialogs, and screens on which there is nothing yet, are text.
JUPITER_UPDATE_GOLDEN=1 writes them anew; open the files in a browser before committing them.
"""

import re

import pytest

from jupiter_tui.app import JupiterTui
from tests.support.tui.gallery import (
    DIALOGS,
    EMPTY,
    LOST,
    SCREENS,
    SIZES,
    STALE,
    STUCK,
    UNKNOWNS,
    shot,
)
from tests.support.tui.pictures import StillTui, settled, shown

LINKS = {"stale": STALE, "lost": LOST}
MIDDLE, SMALL = SIZES["120x40"], SIZES["80x24"]


@pytest.fixture(autouse=True)
def utc(monkeypatch) -> None:
    """Times of day are those of the machine's zone."""
    monkeypatch.setenv("TZ", "UTC")


@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_is_as_it_was_in_every_size_and_with_every_link(golden, name):
    async with shot(SCREENS[name], MIDDLE) as pilot:
        for size, (columns, lines) in SIZES.items():
            await pilot.resize_terminal(columns, lines)
            await settled(pilot)
            golden(f"{name}_{size}.svg", svg_of(pilot.app))
        await pilot.resize_terminal(*MIDDLE)
        for link, message in LINKS.items():
            pilot.app.take_status(message)
            pilot.app.flush()
            await settled(pilot)
            golden(f"{name}_{link}.svg", svg_of(pilot.app))


@pytest.mark.full
@pytest.mark.parametrize("name", UNKNOWNS)
async def test_a_screen_of_which_nothing_is_known_is_as_it_was(golden, name):
    async with shot(UNKNOWNS[name], MIDDLE) as pilot:
        golden(f"{name}_unknown.svg", svg_of(pilot.app))


@pytest.mark.parametrize("name", ["cluster", "training"])
async def test_a_screen_in_ascii_is_as_it_was(golden, name):
    async with shot(SCREENS[name], MIDDLE, is_ascii=True) as pilot:
        golden(f"{name}_ascii.svg", svg_of(pilot.app))


@pytest.mark.parametrize("name", DIALOGS)
async def test_a_dialog_is_as_it_was_in_every_size(golden, name):
    async with shot(DIALOGS[name], MIDDLE) as pilot:
        for size, (columns, lines) in SIZES.items():
            await pilot.resize_terminal(columns, lines)
            await settled(pilot)
            golden(f"{name}_{size}.txt", text_of(pilot.app))
        await pilot.resize_terminal(*SMALL)
        pilot.app.take_status(LOST)
        pilot.app.flush()
        await settled(pilot)
        golden(f"{name}_lost.txt", text_of(pilot.app))


@pytest.mark.parametrize("name", EMPTY)
async def test_an_empty_screen_says_what_to_do(golden, name):
    async with shot(EMPTY[name], SMALL) as pilot:
        golden(f"{name}_empty.txt", text_of(pilot.app))


@pytest.mark.parametrize("name", ["training", "node"])
async def test_a_terminal_that_changes_its_size_looks_as_if_it_had_always_had_it(name):
    async with shot(SCREENS[name], SMALL) as pilot:
        always = text_of(pilot.app)
        await pilot.resize_terminal(*MIDDLE)
        await settled(pilot)
        await pilot.resize_terminal(*SMALL)
        await settled(pilot)
        assert text_of(pilot.app) == always


async def test_a_daemon_that_is_stuck_is_named_with_its_process(golden):
    async with shot(SCREENS["events"], SMALL, STUCK) as pilot:
        golden("events_stuck.txt", text_of(pilot.app))


async def test_the_picture_before_the_first_word(golden):
    app = StillTui()
    async with app.run_test(size=SMALL) as pilot:
        app.take_status(LOST)
        app.flush()
        await pilot.pause()
        golden("nothing_heard.svg", svg_of(app))


def svg_of(app: JupiterTui) -> str:
    """Return a picture without the long names that keep several on one page apart."""
    return re.sub(r"terminal-\d+", "t", app.export_screenshot())


def text_of(app: JupiterTui) -> str:
    return "".join(f"{line.rstrip()}\n" for line in shown(app).splitlines())
