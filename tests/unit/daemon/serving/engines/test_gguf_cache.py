"""Writing a GGUF file that comes to nothing."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from jupiterd.adapter_folder import join
from jupiterd.daemon.serving.engines import gguf_cache
from jupiterd.daemon.serving.engines.gguf_cache import GgufCache
from jupiterd.errors import DiskFullError, WorkFailedError


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


async def test_what_a_writer_that_was_killed_left_is_cleared_away(tmp_path: Path):
    files = tmp_path / "files"
    (files / "merged-half.tmp" / "model").mkdir(parents=True)
    (files / "other.tmp").touch()
    with pytest.raises(WorkFailedError):
        await GgufCache(files).file("key", tmp_path)
    assert list(files.iterdir()) == []


async def test_an_adapter_s_file_needs_room_for_its_merged_model_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    base.mkdir()
    adapter.mkdir()
    (base / "model.safetensors").write_bytes(b"0" * 1000)
    (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "org/base"}')
    joined = join(adapter, base, tmp_path / "joined")
    free = SimpleNamespace(free=1500)
    monkeypatch.setattr(gguf_cache.shutil, "disk_usage", lambda _: free)
    with pytest.raises(DiskFullError):
        await GgufCache(tmp_path / "files").file("key", joined)
    with pytest.raises(WorkFailedError, match="no GGUF file of it"):
        await GgufCache(tmp_path / "files").file("key", base)
