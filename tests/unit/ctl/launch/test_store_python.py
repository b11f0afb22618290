"""A Python without torch is said before its ranks start, and no store is started with it."""

import sys
from pathlib import Path

import pytest

from jupiterd.ctl.launch import store_python
from jupiterd.processes.script_plan import RankOrder, ScriptOrder


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """Return a Python that finds no torch."""
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    python.chmod(0o755)
    return str(python)


def test_ranks_that_need_no_torch_run_and_no_traceback_is_shown(ctl, script, bare):
    name = script("print('mine')")
    ran = ctl("launch", "--per-node", "2", "--verbose", "--", bare, name)
    assert ran.exit_code == 0
    assert ran.out.count("mine") == 2
    assert f"this Python ({bare}) has no torch" in ran.err
    assert "[store]" not in ran.out + ran.err
    assert "Traceback" not in ran.out + ran.err


def test_a_python_that_has_it_is_named(bare: str, monkeypatch: pytest.MonkeyPatch):
    order = ScriptOrder((bare,), "/", (RankOrder(0, {}),))
    monkeypatch.setattr(store_python, "has_torch", lambda path, _: path == sys.executable)
    assert "--python jupiter has it" in store_python.missing(bare, order, {})
    monkeypatch.setattr(store_python, "has_torch", lambda *_: False)
    assert f"{bare} -m pip install torch" in store_python.missing(bare, order, {})
