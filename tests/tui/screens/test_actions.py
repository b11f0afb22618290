"""Changes: asked about first, carried out by the daemon, told in a line."""

from jupiter_tui.actions.action import Action
from jupiter_tui.actions.execution import carried_out
from jupiter_tui.app import JupiterTui
from jupiter_tui.model.scene import Options
from tests.support.client.control_server import ScriptedControl, serving, snapshot
from tests.support.tui.documents import RECORDED
from tests.support.tui.pictures import until

STOP = Action(
    command=("cycle", "stop", "3f2a91bc"),
    title="Stop a cycle",
    question="Stop cycle 3f2a91bc, python?",
    consequences=("What it has made stays.",),
)


async def _asked(short_dir, key: str, expected: str, **options) -> ScriptedControl:
    control = ScriptedControl()
    control.events.put_nowait(snapshot(**RECORDED))
    app = JupiterTui(Options(short_dir, refresh_hz=10.0, **options))
    async with (
        serving(control, short_dir / "control.sock"),
        app.run_test(size=(120, 40), notifications=True) as pilot,
    ):
        await until(pilot, lambda text: "node-2" in text)
        app.ask_and_do(STOP)
        await until(pilot, lambda text: "$ jupiterctl cycle stop 3f2a91bc" in text)
        await pilot.press(key)
        await until(pilot, lambda text: expected in text and "Stop cycle" not in text)
    return control


async def test_yes_runs_the_command_that_was_shown(short_dir):
    control = await _asked(short_dir, "y", "stopped; what it has made stays")
    assert control.executed == [("cycle.stop", {"cycle": "3f2a91bc"})]


async def test_what_goes_wrong_is_told_with_its_hint(short_dir):
    told, is_done = await carried_out(short_dir, STOP)
    assert not is_done
    assert str(short_dir) in told
    assert "\nhint: " in told


async def test_a_dashboard_of_a_named_folder_shows_the_command_with_it(short_dir):
    app = JupiterTui(Options(short_dir, named_dir=short_dir))
    async with app.run_test(size=(120, 40)) as pilot:
        app.ask_and_do(STOP)
        shown = f"$ jupiterctl --state-dir {short_dir} cycle stop"
        await until(pilot, lambda text: shown in text)
        await pilot.press("n")


async def test_no_does_nothing(short_dir):
    control = await _asked(short_dir, "n", "node-2")
    assert control.executed == []


async def test_a_dashboard_that_only_reads_asks_nothing_and_does_nothing(short_dir):
    app = JupiterTui(Options(short_dir, is_readonly=True))
    async with app.run_test(size=(120, 40)) as pilot:
        await app.ask_and_do(STOP).wait()
        await pilot.pause()
        assert len(app.screen_stack) == 1
