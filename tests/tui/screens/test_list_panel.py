"""A list on the screen: keys and clicks choose, filter and sort."""

from jupiterd.client.watch import Link, LinkChanged, Snapshot
from tests.support.tui.documents import RECORDED, messages
from tests.support.tui.pictures import StillTui, shown, until


def _told(app: StillTui, nodes=None) -> None:
    app.take_status(LinkChanged(Link.LIVE))
    app.take_status(Snapshot(RECORDED | ({"nodes": nodes} if nodes else {})))
    app.flush()


def _marked(text: str) -> str:
    (marked,) = [row for row in text.splitlines() if row.lstrip("│ ").startswith(">")]
    return marked


async def test_the_arrow_keys_choose_a_node_and_the_choice_stays_on_it():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        _told(app)
        await pilot.press("down")
        text = await until(pilot, lambda text: ">   node-2" in text)
        _told(app, [node for node in RECORDED["nodes"] if node["name"] != "node-1"])
        await until(pilot, lambda text: ">   node-2" in text and "node-1 " not in _marked(text))
        await pilot.press("end")
        text = await until(pilot, lambda text: ">   node-3" in text)
        assert "node-3" in _marked(text)


async def test_a_click_chooses_a_row():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        _told(app)
        await pilot.pause()
        rows = shown(app).splitlines()
        line = next(at for at, row in enumerate(rows) if "node-3" in row)
        await pilot.click(offset=(10, line))
        await until(pilot, lambda text: ">   node-3" in text)


async def test_a_filter_is_written_kept_and_dropped():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        _told(app)
        await pilot.press("slash", *"generator")
        await until(pilot, lambda text: "node-1" in text and "node-2" not in text)
        await pilot.press("enter")
        text = await until(pilot, lambda text: "filter: generator" in text)
        assert "node-2" not in text
        await pilot.press("slash", "escape")
        await until(pilot, lambda text: "node-2" in text and "filter:" not in text)


async def test_s_puts_the_rows_in_another_order_and_says_which():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        _told(app)
        await pilot.press("s", "s")
        text = await until(pilot, lambda text: "by role" in text)
        places = [text.index(name) for name in ("node-1 ", "node-2 ", "node-3 ")]
        assert min(places) == places[0], "the generator comes before the trainers"


async def test_help_tells_the_keys_of_the_view_in_front():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        for message in messages(3):
            app.take_status(message)
        await pilot.press("question_mark")
        await until(pilot, lambda text: "in another order" in text)
        await pilot.press("escape", "2", "question_mark")
        text = await until(pilot, lambda text: "holds the picture still" in text)
        assert "in another order" not in text
