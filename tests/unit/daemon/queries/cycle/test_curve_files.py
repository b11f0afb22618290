"""The curves that ranks of this node have written: read on, never read twice."""

import json
from pathlib import Path

from jupiterd.cycle.base.thinned_curve import CurvePoint, DrawnCurve
from jupiterd.daemon.queries.cycle.curve_files import METRICS_FILE, CurveFiles
from jupiterd.daemon.queries.cycle.curve_wire import curves_of, curves_reply

RUN = "3f2a91bc00112233"


def write(folder: Path, *steps: int, loss: float = 2.0, tail: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"step": step, "round": 1, "loss": loss}) + "\n" for step in steps]
    with (folder / METRICS_FILE).open("a") as file:
        file.write("".join(lines) + tail)


async def steps_of(files: CurveFiles, island: int = 0) -> list[int]:
    return [point.step for point in (await files.of_run(RUN))[island].points]


async def test_a_curve_is_read_on_as_it_is_written(tmp_path: Path):
    files, folder = CurveFiles(tmp_path), tmp_path / RUN[:8]
    write(folder, 1, 2, tail='{"step": 3, "lo')
    assert await steps_of(files) == [1, 2]
    with (folder / METRICS_FILE).open("a") as file:
        file.write('ss": 1.5}\n')
    write(folder, 4)
    assert await steps_of(files) == [1, 2, 3, 4]


async def test_a_run_that_went_back_has_its_curve_read_anew(tmp_path: Path):
    files, folder = CurveFiles(tmp_path), tmp_path / RUN[:8]
    write(folder, 1, 2, 3)
    assert await steps_of(files) == [1, 2, 3]
    write(tmp_path / "new", 1, loss=9.0)
    (tmp_path / "new" / METRICS_FILE).replace(folder / METRICS_FILE)
    curve = (await files.of_run(RUN))[0]
    assert [point.loss for point in curve.points] == [9.0]


async def test_islands_have_curves_of_their_own(tmp_path: Path):
    files = CurveFiles(tmp_path)
    write(tmp_path / RUN[:8] / "island-2", 5)
    write(tmp_path / RUN[:8] / "island-x", 6)
    assert list(await files.of_run(RUN)) == [2]


async def test_of_a_run_that_left_nothing_there_is_nothing(tmp_path: Path):
    files = CurveFiles(tmp_path)
    assert await files.of_run(RUN) == {}
    assert await files.of_run("../../etc") == {}
    write(tmp_path / RUN[:8], 1)
    assert await steps_of(files) == [1]
    (tmp_path / RUN[:8] / METRICS_FILE).unlink()
    assert await files.of_run(RUN) == {}


def test_curves_are_the_same_on_the_other_side_of_the_wire():
    curve = DrawnCurve(
        2, (CurvePoint(4, 2.5, 400, 7.25), CurvePoint(8, 2.0)), (CurvePoint(8, 2.25),)
    )
    assert curves_of(curves_reply({3: curve})) == {3: curve}


def test_what_is_no_number_is_not_believed():
    reply = curves_reply(
        {0: DrawnCurve(None, (CurvePoint(1, float("nan")), CurvePoint(2, 1.0)), ())}
    )
    assert [point.step for point in curves_of(reply)[0].points] == [2]
