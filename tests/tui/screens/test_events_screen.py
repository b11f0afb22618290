"""The screen of events."""

from contextlib import asynccontextmanager

from jupiterd.client.watch import Link, LinkChanged, Snapshot
from tests.support.tui.documents import RECORDED
from tests.support.tui.pictures import StillTui, until
from tests.unit.ctl.diagnose.test_events import EVENTS


@asynccontextmanager
async def opened(document=EVENTS):
    """Open the screen on these events."""
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        app.take_status(LinkChanged(Link.LIVE))
        app.take_status(Snapshot(RECORDED))
        app.take_document("events", Snapshot(document))
        await pilot.press("5")
        app.flush()
        yield app, pilot


async def test_the_newest_event_stands_first_and_no_text_steers_the_terminal():
    async with opened() as (_, pilot):
        text = await until(pilot, lambda text: "> " in text and "ada is a member" in text)
        assert text.index("ada went away?[2J") < text.index("ada is a member")


async def test_what_matters_less_is_left_out_by_a_key():
    async with opened() as (_, pilot):
        await pilot.press("l")
        text = await until(pilot, lambda text: "Events from warning on" in text)
        assert "ada is a member" not in text
        await pilot.press("l")
        await until(pilot, lambda text: "nothing happened yet" in text)
        await pilot.press("l")
        await until(pilot, lambda text: "ada is a member" in text)


async def test_enter_shows_the_machine_that_it_happened_to():
    async with opened() as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda text: "asking for it" in text)
        assert [source.noun for source in app.screen.sources] == ["node/aa"]


async def test_without_events_it_says_so():
    async with opened(EVENTS | {"events": []}) as (_, pilot):
        await until(pilot, lambda text: "nothing happened yet" in text)
