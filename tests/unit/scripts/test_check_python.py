"""What `make` says about a Python that can't run Jupiter."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "check_python.py"


def test_this_python_will_do() -> None:
    assert runpy.run_path(str(SCRIPT))["complaint"]() is None


def test_an_old_python_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2, "final", 0))
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert end.value.code == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("make: error: Jupiter needs Python 3.11 or newer, and ")
    assert told[0].endswith("is 3.9")
    assert told[2] == "hint: install a newer one and name it: make setup PYTHON=python3.12"


def test_a_python_without_venv_is_told_which_package_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    wrong, hint = runpy.run_path(str(SCRIPT))["complaint"]()
    assert wrong.endswith("is here without its venv module")
    assert "python3-venv" in hint
