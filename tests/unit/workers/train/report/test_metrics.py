"""Curves of a run: nothing twice, nothing lost, and TensorBoard reads them."""

import errno
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tensorboardX.proto import event_pb2

from jupiterd.workers.train.report.metrics import BOARD, JSONL_FILE, RunMetrics, older_part


def steps_in(folder: Path) -> list[int]:
    lines = (folder / JSONL_FILE).read_text().splitlines()
    return [json.loads(line)["step"] for line in lines]


def events_in(folder: Path) -> list[Any]:
    """Read TensorBoard's records: length, its check sum, the event, its check sum."""
    event: Any = vars(event_pb2)["Event"]
    events: list[Any] = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        data = path.read_bytes()
        while len(data) >= 16 + (size := int.from_bytes(data[:8], "little")):
            events.append(event.FromString(data[12 : 12 + size]))
            data = data[12 + size + 4 :]
    return events


def tags_in(folder: Path) -> set[str]:
    return {value.tag for event in events_in(folder) for value in event.summary.value}


def test_every_reading_has_its_line_and_its_curve(tmp_path: Path) -> None:
    with closing(RunMetrics(tmp_path, 0)) as metrics:
        readings = {"loss": 2.5, "tokens_per_s": 10.0, "mfu": None, "grad_norm": 1.0, "lr": 0.1}
        metrics.write(1, readings, vram_bytes=3 << 20)
        metrics.write(2, {"train_loss": 2.0, "val_loss": 2.1, "epoch_seconds": 3.0})
    first = json.loads((tmp_path / JSONL_FILE).read_text().splitlines()[0])
    assert first["loss"] == 2.5
    assert "mfu" not in first
    assert tags_in(tmp_path) == {
        "Loss/train_step",
        "Loss/train_epoch",
        "Loss/val_epoch",
        "Time/epoch_seconds",
        "System/CPU_percent",
        "System/RAM_percent",
        "System/GPU_VRAM_MB",
        "Perf/tok_per_sec",
        "Train/grad_norm",
        "Train/lr",
    }


def test_a_run_that_goes_on_takes_back_the_steps_it_does_again(tmp_path: Path) -> None:
    with closing(RunMetrics(tmp_path, 0)) as metrics:
        for step in (1, 2, 3):
            metrics.write(step, {"loss": 1.0})
    with closing(RunMetrics(tmp_path, 2)) as metrics:
        metrics.write(3, {"loss": 1.0})
    assert steps_in(tmp_path) == [1, 2, 3]


def test_a_line_torn_by_a_crash_is_dropped(tmp_path: Path) -> None:
    (tmp_path / JSONL_FILE).write_text('{"step": 1, "loss": 1.0}\n{"step": 2, "lo')
    with closing(RunMetrics(tmp_path, 2)) as metrics:
        metrics.write(3, {"loss": 1.0})
    assert steps_in(tmp_path) == [1, 3]


WRITES_BEYOND_THE_ROOM = """
import resource, sys
from pathlib import Path
from jupiterd.workers.train.report.metrics import RunMetrics

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
metrics = RunMetrics(Path(sys.argv[1]), 0)
for step in range(1, 401):
    metrics.write(step, {"loss": 1.0, "lr": 0.1})
metrics.close()
print("all steps were made")
"""


@pytest.mark.full
def test_a_full_disk_costs_curves_and_one_line_each_and_no_step(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITES_BEYOND_THE_ROOM, str(tmp_path)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    *told, end = child.stdout.splitlines()
    assert end == "all steps were made"
    assert {line.partition(":")[0] for line in told} == {f"no {JSONL_FILE}", f"no {BOARD}"}
    assert len(told) == 2
    assert "Loss/train_step" in tags_in(tmp_path), "what was written before can be read"


def test_what_cant_be_read_of_the_machine_costs_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psutil.virtual_memory", no_room)
    with closing(RunMetrics(tmp_path, 0)) as metrics:
        metrics.write(1, {"loss": 1.0})
    assert steps_in(tmp_path) == [1]


def test_where_there_is_no_room_at_all_there_are_no_curves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "curves").write_text("a file where a folder should be")
    with closing(RunMetrics(tmp_path / "curves", 0)) as metrics:
        metrics.write(1, {"loss": 1.0})
        metrics.write(2, {"loss": 1.0})
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_without_tensorboards_library_there_are_lines_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with closing(RunMetrics(tmp_path, 0)) as metrics:
        metrics.write(1, {"loss": 1.0})
    assert steps_in(tmp_path) == [1]


def test_a_long_runs_lines_are_turned_over_and_taken_back_from_both_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.workers.train.report.metrics.MAX_BYTES", 400)
    with closing(RunMetrics(tmp_path, 0)) as metrics:
        for step in range(1, 12):
            metrics.write(step, {"loss": 1.0})
    older = older_part(tmp_path / JSONL_FILE)
    before = [json.loads(line)["step"] for line in older.read_text().splitlines()]
    assert before
    assert [*before, *steps_in(tmp_path)] == list(range(before[0], 12))
    with closing(RunMetrics(tmp_path, before[0])) as metrics:
        metrics.write(before[0] + 1, {"loss": 1.0})
    assert [json.loads(line)["step"] for line in older.read_text().splitlines()] == before[:1]
    assert steps_in(tmp_path) == [before[0] + 1]


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left")
