"""A script in a folder of its own, for jupiterctl launch on this machine."""

from pathlib import Path

import pytest


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def write(text: str) -> str:
        (tmp_path / "train.py").write_text(text)
        return "train.py"

    return write
