"""The dashboard in every theme, in ASCII, without colours, and with the mouse."""

import pytest

from jupiter_tui.drawings.primitives.lines import Tone
from jupiter_tui.widgets.keys import SCREENS as TABS
from jupiter_tui.widgets.panel import STYLES
from jupiterd.client.watch import Delta
from tests.support.tui.gallery import DIALOGS, EMPTY, LOST, SCREENS, STALE, shot
from tests.support.tui.pictures import StillTui, settled, shown, until

SIZE = (120, 40)
SELDOM_HZ = 1e-3
"""No flush but those that a test asks for, however slow the machine is."""


def _place(text: str, words: str) -> tuple[int, int]:
    """Return the column and the line where words begin on the screen."""
    line = next(at for at, row in enumerate(text.splitlines()) if words in row)
    return text.splitlines()[line].index(words), line


async def test_every_theme_has_a_colour_for_every_tone_and_says_the_same():
    async with shot(SCREENS["cluster"], SIZE) as pilot:
        told = shown(pilot.app)
        themes = list(pilot.app.available_themes)
        assert {"ansi-dark", "ansi-light", "textual-light", "nord"} <= set(themes)
        for theme in themes:
            pilot.app.theme = theme
            await settled(pilot)
            assert shown(pilot.app) == told, theme
            good, bad = (_colour_of(pilot.app, words) for words in ("alive  ", "gone "))
            assert good != bad, theme


def _colour_of(app: StillTui, words: str) -> object:
    """Return the colour in which the first of these words is written below the header."""
    for strip in app.screen._compositor.render_strips()[3:]:
        for segment in strip:
            if words in segment.text and segment.style is not None:
                return segment.style.color
    raise AssertionError(words)


def test_every_tone_has_a_style():
    assert set(STYLES) == set(Tone)


@pytest.mark.full
@pytest.mark.parametrize("name", [*SCREENS, *DIALOGS])
async def test_ascii_is_ascii_on_every_screen_and_in_every_dialog(name):
    async with shot((SCREENS | DIALOGS)[name], SIZE, LOST, is_ascii=True) as pilot:
        pilot.app.notify("a word", severity="error")
        text = await settled(pilot)
        assert "".join(sorted({char for char in text if not char.isascii()})) == ""


async def test_without_colours_each_state_is_told_by_its_word(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with shot(SCREENS["cluster"], SIZE) as pilot:
        assert pilot.app.no_color
        text = await settled(pilot)
        assert {"alive", "suspect", "gone", "pending"} <= set(text.split())
        assert {"warning", "info"} <= set(text.split())
        for message, words in ((STALE, "● stale"), (LOST, "● lost")):
            pilot.app.take_status(message)
            pilot.app.flush()
            await until(pilot, lambda text, words=words: words in text)
        colours = {
            segment.style.color
            for strip in pilot.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None
        }
        assert all(colour is None or _is_grey(colour) for colour in colours)


def _is_grey(colour) -> bool:
    triplet = colour.get_truecolor()
    return max(triplet) - min(triplet) <= 2


@pytest.mark.full
@pytest.mark.parametrize("tab", TABS, ids=lambda key: key.label)
async def test_a_click_on_a_tab_brings_its_screen_to_the_front(tab):
    other = "2" if tab.label == "Cluster" else "1"
    async with shot(SCREENS["cluster"], SIZE) as pilot:
        await pilot.press(other)
        text = await settled(pilot)
        column, line = _place(text, f"{tab.shown[0]} {tab.label}")
        await pilot.click(offset=(column + 2, line))
        await until(pilot, lambda text: f"[{tab.shown[0]} {tab.label}]" in text)


async def test_a_click_on_a_key_of_the_footer_does_what_the_key_does():
    async with shot(SCREENS["cluster"], SIZE) as pilot:
        column, line = _place(shown(pilot.app), "X Remove")
        await pilot.click(offset=(column + 3, line))
        await until(pilot, lambda text: "jupiterctl node remove" in text)


async def test_a_second_click_on_a_row_opens_it():
    async with shot(SCREENS["events"], SIZE) as pilot:
        column, line = _place(shown(pilot.app), "laptop is a member")
        await pilot.click(offset=(column, line))
        await until(pilot, lambda text: "enter shows laptop" in text)
        await pilot.click(offset=(column, line), times=2)
        await until(pilot, lambda text: "asking for it" in text)


@pytest.mark.full
@pytest.mark.parametrize("name", EMPTY)
async def test_an_empty_screen_can_be_sorted_filtered_and_opened_and_nothing_happens(name):
    async with shot(EMPTY[name], SIZE) as pilot:
        await pilot.press("s", "slash", *"zzz", "enter", "enter", "up", "end", "pagedown")
        text = await settled(pilot)
        assert "Traceback" not in text
        assert pilot.app.is_running


async def test_between_two_flushes_nothing_is_painted():
    async with shot(SCREENS["cluster"], SIZE, refresh_hz=SELDOM_HZ) as pilot:
        before = await settled(pilot)
        gone = [node | {"state": "gone"} for node in pilot.app.scene().view.document["nodes"]]
        for message in [Delta({"nodes": gone})] * 320:
            pilot.app.take_status(message)
        assert await settled(pilot) == before
        pilot.app.flush()
        await until(pilot, lambda text: "alive   trainer" not in text)


async def test_a_link_that_changes_is_shown_at_once():
    async with shot(SCREENS["cluster"], SIZE) as pilot:
        pilot.app.take_status(LOST)
        assert "● lost" in await settled(pilot)
