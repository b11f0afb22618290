"""The whole dashboard over a real gRPC stream; only the daemon behind it is missing."""

from contextlib import asynccontextmanager

import pytest

from jupiter_tui.app import JupiterTui
from jupiter_tui.drawings.nodes import ALONE
from jupiter_tui.model.scene import Options
from jupiter_tui.widgets.keys import KEYS, SCREENS
from jupiterd.client.watch import Delta
from jupiterd.errors import NotFoundError
from jupiterd.protocol.call_errors import abort
from jupiterd.rpc import control_pb2
from tests.support.client.control_server import ScriptedControl, delta, serving, snapshot
from tests.support.tui.documents import RECORDED, cycle, messages, trained
from tests.support.tui.pictures import StillTui, until

LEADING = "leader node-1"


@asynccontextmanager
async def opened(state_dir, size=(120, 40), stale_after_s=5.0, **options):
    """Open the dashboard on a state folder."""
    app = JupiterTui(Options(state_dir, refresh_hz=10.0, **options), stale_after_s=stale_after_s)
    async with app.run_test(size=size) as pilot:
        yield pilot


def _control(*events) -> ScriptedControl:
    control = ScriptedControl()
    for event in events or (snapshot(**RECORDED),):
        control.events.put_nowait(event)
    return control


async def test_the_cluster_of_a_daemon_is_shown(short_dir):
    async with serving(_control(), short_dir / "control.sock"), opened(short_dir) as pilot:
        words = [
            LEADING,
            "● live",
            *(f"{node[k]}" for node in RECORDED["nodes"] for k in ("name", "role")),
        ]
        await until(pilot, lambda text: all(word in text for word in words))


async def test_keys_switch_between_the_screens(short_dir):
    async with serving(_control(), short_dir / "control.sock"), opened(short_dir) as pilot:
        await until(pilot, lambda text: LEADING in text)
        for key, title, other in (
            ("2", "Phases", "Health"), ("1", "Health", "Phases"),
            ("t", "Phases", "Health"), ("c", "Health", "Phases"),
        ):  # fmt: skip
            await pilot.press(key)
            await until(
                pilot,
                lambda text, title=title, other=other: (
                    title in text and other not in text and LEADING in text
                ),
            )


async def test_changes_reach_the_screen_as_they_come(short_dir):
    control = _control()
    async with serving(control, short_dir / "control.sock"), opened(short_dir) as pilot:
        await pilot.press("2")
        await until(pilot, lambda text: LEADING in text)
        for step in (432, 444):
            control.events.put_nowait(delta(**trained(step, 3.25).changed))
            await until(pilot, lambda text, step=step: f"{step} of " in text)
        assert [point.step for point in pilot.app.scene().view.curve.points][-2:] == [432, 444]


async def test_a_lost_daemon_leaves_its_last_picture_and_is_found_again(short_dir):
    async with opened(short_dir) as pilot:
        start = f"jupiterd --state-dir {short_dir}"
        text = await until(pilot, lambda text: "● lost" in text and start in text)
        assert str(short_dir / "control.sock") in "".join(text.split())
        async with serving(_control(), short_dir / "control.sock"):
            await until(pilot, lambda text: LEADING in text and "● live" in text)
        text = await until(pilot, lambda text: "● lost" in text and "as of" in text)
        assert LEADING in text
        assert "node-3" in text
        again = RECORDED | {"cluster": RECORDED["cluster"] | {"term": 77}}
        async with serving(_control(snapshot(**again)), short_dir / "control.sock"):
            await until(pilot, lambda text: "term 77" in text and "● live" in text)


async def test_a_silent_daemon_is_stale_until_it_speaks_again(short_dir):
    control = _control()
    async with (
        serving(control, short_dir / "control.sock"),
        opened(short_dir, stale_after_s=1.5) as pilot,
    ):
        text = await until(pilot, lambda text: "● stale, as of" in text)
        assert LEADING in text
        control.events.put_nowait(control_pb2.WatchEvent(heartbeat=1))
        await until(pilot, lambda text: "● live" in text)


class _Refusing(ScriptedControl):
    async def Watch(self, request, context):  # noqa: N802 - gRPC's name
        await abort(context, NotFoundError("there is no document called status"))
        yield control_pb2.WatchEvent()


async def test_a_daemon_that_refuses_does_not_end_the_dashboard(short_dir):
    async with serving(_Refusing(), short_dir / "control.sock"), opened(short_dir) as pilot:
        await until(pilot, lambda text: "there is no document called status" in text)
        assert pilot.app.is_running


async def test_no_key_changes_anything_in_the_cluster(short_dir):
    control = _control()
    async with (
        serving(control, short_dir / "control.sock"),
        opened(short_dir, is_readonly=True) as pilot,
    ):
        await until(pilot, lambda text: "read-only" in text and LEADING in text)
        for name in (name for key in KEYS for name in key.names.split(",") if name != "q"):
            await pilot.press(name)
        await pilot.press("escape", "enter", "q")
    assert control.executed == []


async def test_a_paused_picture_stands_still_and_then_catches_up():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        for message in messages(3):
            app.take_status(message)
        await pilot.press("2", "p")
        app.take_status(trained(444, 3.25))
        app.flush()
        held = await until(pilot, lambda text: "paused, live, as of 12:03:41" in text)
        assert "444 of" not in held
        await pilot.press("p")
        await until(pilot, lambda text: "444 of" in text and "paused" not in text)


async def test_help_lists_every_key_and_goes_away():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("question_mark")
        text = await until(pilot, lambda text: KEYS[0].explanation in text)
        assert all(key.explanation in text for key in KEYS)
        await pilot.press("escape")
        await until(pilot, lambda text: KEYS[0].explanation not in text)
        assert app.is_running


@pytest.mark.parametrize("keys", [("q",), ("ctrl+c",), ("question_mark", "ctrl+c")])
async def test_q_ends_it_and_so_does_ctrl_c(keys):
    app = StillTui()
    async with app.run_test() as pilot:
        await pilot.press(*keys)
    assert app.return_code == 0


async def test_the_footer_shows_the_keys():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        text = await until(pilot, lambda text: "Quit" in text)
    footer, screens = text.splitlines()[-1], text.splitlines()[1]
    assert all(key.label in (screens if key in SCREENS else footer) for key in KEYS)


async def test_a_lonely_node_is_told_what_to_check():
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        for message in messages(0):
            app.take_status(message)
        app.take_status(Delta({"nodes": RECORDED["nodes"][:1]}))
        await until(pilot, lambda text: ALONE[0] in text)


@pytest.mark.parametrize("size", [(59, 30), (100, 14), (20, 5)])
async def test_a_terminal_that_is_too_small_says_so(size):
    app = StillTui()
    async with app.run_test(size=size) as pilot:
        text = await until(pilot, lambda text: "too small" in " ".join(text.split()))
        assert "Health" not in text


async def test_a_terminal_that_grows_shows_everything_again():
    app = StillTui()
    async with app.run_test(size=(50, 10)) as pilot:
        await until(pilot, lambda text: "too small" in text)
        await pilot.resize_terminal(60, 15)
        text = await until(pilot, lambda text: "Nodes" in text)
        assert "too small" not in text


async def test_a_narrow_terminal_hides_columns_and_puts_panels_below_each_other():
    app = StillTui()
    async with app.run_test(size=(120, 60)) as pilot:
        for message in messages():
            app.take_status(message)
        await until(pilot, lambda text: "WHY THIS ROLE" in text)
        await pilot.resize_terminal(70, 60)
        narrow = await until(pilot, lambda text: "STATE" in text and "WHY THIS" not in text)
        assert {"NAME", "STATE", "ROLE"} <= set(narrow.split())
        await pilot.press("2")
        text = await until(pilot, lambda text: "Gang" in text)
        (line,) = [line for line in text.splitlines() if "─ Cycle ─" in line]
        assert "Loss" not in line


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("1", ("node-3", "generator", "good: nothing is wrong")),
        ("2", ("python (", "476 of 500", "########", "PROMOTE", "smoothed")),
        ("question_mark", ("Keys", KEYS[0].explanation)),
    ],
)
async def test_ascii_means_ascii(key, words):
    app = StillTui(is_ascii=True)
    async with app.run_test(size=(120, 60)) as pilot:
        for message in messages():
            app.take_status(message)
        await pilot.press(key)
        text = await until(pilot, lambda text: all(word in text for word in words))
    assert "".join(sorted(char for char in set(text) if not char.isascii())) == ""


async def test_without_colours_everything_is_grey(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = StillTui()
    async with app.run_test(size=(120, 40)) as pilot:
        for message in messages(2):
            app.take_status(message)
        await until(pilot, lambda text: "● live" in text)
        assert app.no_color


async def test_a_cycle_that_is_over_keeps_its_curve_and_names_its_model():
    app = StillTui()
    async with app.run_test(size=(120, 60)) as pilot:
        for message in messages():
            app.take_status(message)
        done = [row | {"state": "done"} for row in RECORDED["cycle"]["phases"]]
        app.take_status(
            Delta({"cycle": cycle(state="finished", phases=done, gang=[], model="/state/runs/m")})
        )
        await pilot.press("2")
        words = ("/state/runs/m", "round 2  smoothed", "finished")
        await until(pilot, lambda text: all(word in text for word in words))
