"""The command palette: everything that a key does, by its name."""

import pytest

from jupiter_tui.app import PROMPT
from jupiter_tui.screens.dashboard import DashboardScreen
from jupiter_tui.widgets.keys import KEYS
from tests.support.tui.gallery import DIALOGS, SCREENS, shot
from tests.support.tui.pictures import shown, until

VIEWS = {
    **SCREENS,
    **{name: DIALOGS[name] for name in ("sample", "verdict", "review")},
}
"""Every screen that has keys of its own."""

CHANGING = ("cluster", "cycles", "review")
"""Those that have keys which change something."""

SIZE = (120, 40)


def _titles(pilot) -> list[str]:
    return [command.title for command in pilot.app.get_system_commands(pilot.app.screen)]


@pytest.mark.full
@pytest.mark.parametrize("name", VIEWS)
async def test_every_key_of_a_view_is_a_command_of_the_palette(name):
    async with shot(VIEWS[name], SIZE) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, DashboardScreen)
        wanted = [f"{key.label} ({key.shown})" for key in (*screen.KEYS, *KEYS)]
        assert any(key.changes for key in screen.KEYS) == (name in CHANGING)
        titles = _titles(pilot)
        assert [title for title in wanted if title not in titles] == []
        assert len(set(titles)) == len(titles), "nothing is offered twice"


@pytest.mark.parametrize("name", CHANGING)
async def test_a_palette_that_only_reads_offers_nothing_that_changes(name):
    async with shot(VIEWS[name], SIZE, is_readonly=True) as pilot:
        titles = _titles(pilot)
        changing = [key for key in pilot.app.screen.KEYS if key.changes]
        assert [key for key in changing if f"{key.label} ({key.shown})" in titles] == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("cluster", "Drain", "jupiterctl node drain"),
        ("cluster", "Sort", "by state"),
        ("cluster", "Training (2", "Phases"),
        ("cluster", "Open (enter", "asking for it"),
        ("training", "Log", "log y"),
        ("data", "Earlier", "round 2, generate"),
        ("cycles", "Back (B", "jupiterctl cycle rollback"),
        ("cycles", "New", "Start a cycle"),
        ("events", "Level", "Events from warning on"),
        ("events", "Pause", "paused"),
        ("node", "Back (esc", "WHY THIS|SEEN"),
        ("sample", "Help", "holds the picture still"),
        ("review", "Redo", "--redo"),
    ],
)
async def test_a_command_does_what_its_key_does(name, words, expected):
    async with shot(VIEWS[name], SIZE) as pilot:
        await pilot.press("ctrl+p")
        await until(pilot, lambda text: PROMPT in text)
        await pilot.press(*words)
        await until(pilot, lambda text: words in text)
        await pilot.app.workers.wait_for_complete()
        await pilot.press("down", "enter")
        wanted = expected.split("|")
        await until(pilot, lambda text: any(word in text for word in wanted))


@pytest.mark.parametrize("is_ascii", [False, True])
async def test_the_palette_lists_the_keys_of_the_view_and_goes_away(is_ascii):
    async with shot(SCREENS["training"], SIZE, is_ascii=is_ascii) as pilot:
        await pilot.press("ctrl+p")
        text = await until(pilot, lambda text: "shows the loss over steps" in text)
        strange = {char for char in text if not char.isascii()}
        assert not (is_ascii and strange)
        await pilot.press("escape")
        await until(pilot, lambda text: PROMPT not in text and "271 of 500" in text)
        assert "271 of 500" in shown(pilot.app)
