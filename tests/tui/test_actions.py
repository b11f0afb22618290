"""Changes: asked about first, carried out by the daemon, told in a line."""

from jupiter_tui.action import Action
from jupiter_tui.app import JupiterTui
from jupiter_tui.scene import Options
from tests.tui.documents import RECORDED
from tests.tui.pictures import until
from tests.unit.client.control_server import ScriptedControl, serving, snapshot

REMOVE = Action(
    verb="node.remove",
    arguments={"node": "7600fc64"},
    title="Remove a node",
    question="Remove node-2 (7600fc64) from the cluster?",
    done="node-2 was removed",
    consequences=("It can't come back with the same state folder.",),
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
        app.ask_and_do(REMOVE)
        await until(pilot, lambda text: "Remove node-2 (7600fc64)" in text)
        await pilot.press(key)
        await until(pilot, lambda text: expected in text and "Remove node-2" not in text)
    return control


async def test_yes_has_the_daemon_do_it_and_says_so(short_dir):
    control = await _asked(short_dir, "y", "node-2 was removed")
    assert [verb for verb, _ in control.executed] == ["node.remove"]


async def test_no_does_nothing(short_dir):
    control = await _asked(short_dir, "n", "node-2")
    assert control.executed == []


async def test_a_dashboard_that_only_reads_asks_nothing_and_does_nothing(short_dir):
    app = JupiterTui(Options(short_dir, is_readonly=True))
    async with app.run_test(size=(120, 40)) as pilot:
        await app.ask_and_do(REMOVE).wait()
        await pilot.pause()
        assert len(app.screen_stack) == 1
