"""Modules are imported with nobody looking for garbage, and afterwards it is looked for again."""

import gc
from pathlib import Path

import pytest

from jupiterd.workers.loading import load


def module(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)


def test_no_garbage_is_looked_for_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module(tmp_path, "loaded_quietly", "import gc\nwas_on = gc.isenabled()\n")
    (loaded,) = load(["loaded_quietly"])
    assert not loaded.was_on
    assert gc.isenabled()
    gc.unfreeze()


def test_a_module_that_fails_leaves_the_collector_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module(tmp_path, "never_loaded", "raise ValueError('no')\n")
    with pytest.raises(ValueError, match="no"):
        load(["never_loaded"])
    assert gc.isenabled()
    gc.unfreeze()
