"""Writing a GGUF file that comes to nothing."""

from pathlib import Path

import pytest

from jupiterd.daemon.serving.engines import gguf_cache
from jupiterd.daemon.serving.engines.gguf_cache import GgufCache
from jupiterd.errors import WorkFailedError


async def test_one_that_takes_too_long_is_given_up_as_a_failed_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gguf_cache, "WRITING_S", 0.0)
    with pytest.raises(WorkFailedError, match="not written within"):
        await GgufCache(tmp_path / "files").file("key", tmp_path)


async def test_one_of_a_folder_that_is_no_model_is_told_with_the_writer_s_words(tmp_path: Path):
    with pytest.raises(WorkFailedError, match="no GGUF file of it"):
        await GgufCache(tmp_path / "files").file("key", tmp_path)
    assert not (tmp_path / "files" / "key.gguf").exists()
