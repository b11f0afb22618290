"""What ranks print, on disk: read from any place, bounded, and nothing of it twice."""

import os
from pathlib import Path

import pytest

from jupiterd.errors import CorruptArtifactError
from jupiterd.processes.scripts.event_log import EventReader, EventWriter, segments
from jupiterd.processes.scripts.events import Ended, Ending, Notice, Over, Printed, Skipped
from jupiterd.protocol.frames import ConnectionsRefused

EVENTS = (
    Printed(0, is_error=False, data=b"one\n"),
    Printed(-1, is_error=True, data=b"\xff\r"),
    Ending("its owner ended it"),
    Ended(3, 137),
    Notice("a port is closed"),
    ConnectionsRefused(3, ["10.0.0.9"]),
    Over("why", "conflict", "do that"),
)


def test_events_are_read_as_they_were_written(tmp_path: Path):
    writer = EventWriter(tmp_path)
    for event in EVENTS:
        writer.append(event)
    assert tuple(EventReader(tmp_path).read()) == EVENTS


def test_whoever_comes_again_says_where_it_was(tmp_path: Path):
    writer, reader = EventWriter(tmp_path), EventReader(tmp_path)
    seen = []
    for event in EVENTS:
        writer.append(event)
        reader = EventReader(tmp_path, reader.offset)
        seen += reader.read()
        assert not list(reader.read()), "nothing twice"
    assert tuple(seen) == EVENTS


def test_a_noisy_script_fills_no_disk_and_what_is_skipped_is_counted(tmp_path: Path):
    writer, early = EventWriter(tmp_path, segment_bytes=1000, segments=3), EventReader(tmp_path)
    lines = [b"line %d\n" % n for n in range(500)]
    for line in lines:
        writer.append(Printed(0, is_error=False, data=line))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 4 * 1100
    first, *rest = early.read()
    assert isinstance(first, Skipped)
    assert first.size_bytes == segments(tmp_path)[0]
    assert [event.data for event in rest] == lines[-len(rest) :]


def test_half_a_record_is_waited_for(tmp_path: Path):
    EventWriter(tmp_path).append(EVENTS[0])
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    reader = EventReader(tmp_path)
    assert not list(reader.read())
    path.write_bytes(whole)
    assert list(reader.read()) == [EVENTS[0]]


def test_an_offset_beyond_all_that_is_written_finds_nothing(tmp_path: Path):
    EventWriter(tmp_path).append(EVENTS[0])
    for offset in (1 << 20, (1 << 64) - 1):
        assert not list(EventReader(tmp_path, offset).read())


def test_an_offset_between_two_events_is_refused(tmp_path: Path):
    writer = EventWriter(tmp_path)
    writer.append(Printed(0, is_error=False, data=b"\xff" * 100))
    with pytest.raises(CorruptArtifactError):
        list(EventReader(tmp_path, 20).read())


def test_what_no_disk_takes_is_counted_and_goes_nowhere_else(tmp_path: Path):
    log, away = tmp_path / "log", tmp_path / "away"
    log.mkdir()
    writer = EventWriter(log, segment_bytes=10)
    writer.append(EVENTS[0])
    log.rename(away)  # no next segment can be opened
    writer.append(EVENTS[0])
    with (tmp_path / "somebody else's").open("wb") as other:
        writer.append(EVENTS[0])
        assert os.fstat(other.fileno()).st_size == 0
    away.rename(log)
    writer.append(EVENTS[1])
    size_bytes = 13  # of each: a head of 9, and "one\n"
    expected = [EVENTS[0], Skipped(2 * size_bytes), EVENTS[1]]
    assert list(EventReader(log).read()) == expected
