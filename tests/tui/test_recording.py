"""A run that is written down and looked at again."""

import json

import pytest

from jupiter_tui.app import JupiterTui
from jupiter_tui.main import run
from jupiter_tui.model.recorder import Recorder, play
from jupiter_tui.model.recording import RecordedMessage, parsed_line, recorded_line
from jupiter_tui.model.scene import Options
from jupiterd.client.watch import Delta, Heartbeat, Link, LinkChanged, Snapshot
from jupiterd.errors import UsageError
from tests.support.tui.documents import RECORDED, messages, trained
from tests.support.tui.pictures import until


@pytest.mark.parametrize(
    "message",
    [
        Snapshot({"a": 1}),
        Delta({"b": [None, "ü"]}),
        Heartbeat(7),
        LinkChanged(Link.LOST, "it went away", 1.5, "start it"),
    ],
)
def test_every_message_comes_back_as_it_was(message):
    recorded = RecordedMessage(1.25, "status", message)
    assert parsed_line(recorded_line(recorded)) == recorded


def _recorded(path, told):
    recorder = Recorder(path)
    for at, (noun, message) in enumerate(told):
        recorder.take(noun, message, 100.0 + at)
    return path


async def test_what_was_written_down_is_played_in_its_order(tmp_path):
    told = [("status", Snapshot({"a": 1})), ("links", Snapshot({"links": []}))]
    path = _recorded(tmp_path / "run.jsonl", told)
    recorded = []
    await play(path, lambda *each: recorded.append(each), speed=1000.0)
    assert recorded[:-1] == told
    assert recorded[-1][1].reason == "the recording ends here"


async def test_the_dashboard_shows_a_recording_and_changes_nothing(tmp_path):
    path = _recorded(tmp_path / "run.jsonl", [("status", each) for each in messages(3)])
    options = Options(tmp_path, replay=path, speed=1000.0, is_readonly=True, refresh_hz=10.0)
    app = JupiterTui(options)
    async with app.run_test(size=(120, 40)) as pilot:
        text = await until(pilot, lambda text: "the recording ends here" in text)
        assert "node-3" in text
        assert "read-only" in text
        await pilot.press("X")
        assert len(app.screen_stack) == 1


async def test_what_the_dashboard_hears_is_written_down(tmp_path):
    path = tmp_path / "run.jsonl"
    app = JupiterTui(Options(tmp_path, record=path))
    for message in (LinkChanged(Link.LIVE), Snapshot(RECORDED), trained(432, 3.25)):
        app.take_status(message)
    lines = [parsed_line(line) for line in path.read_text().splitlines()[1:]]
    assert [type(recorded.message) for recorded in lines] == [LinkChanged, Snapshot, Delta]


@pytest.mark.parametrize("text", ["", "{}", "no json\n", '{"form": "another"}\n'])
def test_what_is_no_recording_is_refused_before_anything_is_drawn(
    tmp_path, text, capsys, monkeypatch
):
    monkeypatch.setenv("TEXTUAL_DRIVER", "none")
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    assert run(["--replay", str(path)]) == 2
    assert "jupiter-tui: error: the file is no recording" in capsys.readouterr().err


async def test_a_damaged_line_is_told(tmp_path):
    path = _recorded(tmp_path / "run.jsonl", [("status", Snapshot({}))])
    path.write_text(path.read_text() + json.dumps({"at_s": 1}) + "\n")
    with pytest.raises(UsageError, match="damaged"):
        await play(path, lambda *_: None, speed=1000.0)


def test_a_recording_never_overwrites_another(tmp_path):
    _recorded(tmp_path / "run.jsonl", [])
    with pytest.raises(UsageError, match="can't be written"):
        Recorder(tmp_path / "run.jsonl")
