"""Pictures of the dashboard, as SVG, compared with those that somebody has looked at.

JUPITER_UPDATE_GOLDEN=1 writes them anew; open the files in a browser before committing them.
"""

import pytest

from jupiterd.client.watch import Link, LinkChanged
from tests.tui import training_documents as training
from tests.tui.documents import messages
from tests.tui.pictures import StillTui

LOST = LinkChanged(
    Link.LOST,
    "no jupiterd answers on /state/control.sock: the folder is there, but jupiterd isn't running",
    1.6,
)


@pytest.mark.parametrize(
    ("name", "size", "key", "more", "options"),
    [
        ("cluster", (120, 40), "1", (), {}),
        ("cluster_narrow", (80, 24), "1", (), {}),
        ("cluster_lost", (120, 40), "1", (LOST,), {}),
    ],
)
async def test_the_picture_is_as_it_was(golden, name, size, key, more, options):
    app = StillTui(**options)
    async with app.run_test(size=size) as pilot:
        for message in (*messages(), *more):
            app.tell(message)
        await pilot.press(key)
        app.flush()
        await pilot.pause()
        picture = app.export_screenshot()
    golden(f"{name}.svg", picture)


@pytest.mark.parametrize(
    ("name", "size", "change", "options"),
    [
        ("training", (120, 40), training.with_shares(), {}),
        ("training_narrow", (80, 24), training.with_shares(), {}),
        ("training_large", (200, 60), training.with_shares(), {}),
        ("training_islands", (200, 60), training.of_islands(), {}),
        ("training_lost", (120, 40), LOST, {}),
        ("training_ascii", (120, 40), training.with_shares(), {"is_ascii": True}),
    ],
)
async def test_the_picture_of_a_training_is_as_it_was(golden, name, size, change, options):
    app = StillTui(**options)
    async with app.run_test(size=size) as pilot:
        for message in (*messages(), change):
            app.tell(message)
        for noun, message in training.told():
            app.tell_of(noun, message)
        await pilot.press("2")
        app.flush()
        await pilot.pause()
        picture = app.export_screenshot()
    golden(f"{name}.svg", picture)


async def test_the_picture_before_the_first_word(golden):
    app = StillTui()
    async with app.run_test(size=(80, 24)) as pilot:
        app.tell(LOST)
        app.flush()
        await pilot.pause()
        picture = app.export_screenshot()
    golden("nothing_heard.svg", picture)
