"""What `make score` says where it can't begin."""

import runpy
import sys
from pathlib import Path

import pytest

from jupiterd.errors import ExitCode

SCRIPT = Path(__file__).parents[3] / "scripts" / "score_outside.py"


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        ([], ExitCode.USAGE, "no model was named"),
        (["/nowhere"], ExitCode.NOT_FOUND, "/nowhere is no folder with a model"),
    ],
)
def test_without_a_model_one_line_says_so_and_a_hint_how_to_name_it(
    arguments: list[str],
    status: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["score_outside.py", *arguments])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert end.value.code == status
    error, empty, hint = capsys.readouterr().err.splitlines()
    assert (error, empty) == (f"score: error: {told}", "")
    assert hint.startswith("hint: make score MODEL=FOLDER")
