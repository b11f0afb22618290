"""A model's folder may hold links into itself or a cache of the hub, and to nothing else."""

from pathlib import Path

import pytest

from jupiterd.errors import UsageError
from jupiterd.model_folder import check_links
from jupiterd.workers.tokens.tokenizer import copy_tokenizer


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    path = tmp_path / "home" / "credentials.json"
    path.write_text('{"token": "secret"}')
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    return tmp_path / "model"


def test_a_link_to_somewhere_else_is_refused_and_both_ends_are_named(
    folder: Path, secret: Path
) -> None:
    (folder / "tokenizer.json").symlink_to("../home/credentials.json")
    with pytest.raises(UsageError) as refused:
        check_links(folder)
    assert f"tokenizer.json of {folder} is a link" in refused.value.message
    assert refused.value.message.endswith(f"to {secret}")
    with pytest.raises(UsageError):  # what a worker would hand on to everybody
        copy_tokenizer(folder, folder.parent / "copy")
    assert not (folder.parent / "copy").exists()


def test_a_link_that_stays_inside_is_followed(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "weights").write_text("")
    (folder / "model.safetensors").symlink_to("sub/weights")
    (folder.parent / "named").symlink_to(folder)
    check_links(folder)
    check_links(folder.parent / "named")


def test_a_snapshot_leads_to_the_blobs_beside_it_and_no_further(
    tmp_path: Path, secret: Path
) -> None:
    repository = tmp_path / "models--ada--tiny"
    snapshot, blobs = repository / "snapshots" / "1f2e", repository / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "ab12").write_text("{}")
    (snapshot / "config.json").symlink_to("../../blobs/ab12")
    check_links(snapshot)
    (blobs / "cd34").symlink_to(secret)  # a cache that somebody has packed
    (snapshot / "tokenizer.json").symlink_to("../../blobs/cd34")
    with pytest.raises(UsageError, match=r"tokenizer\.json of"):
        check_links(snapshot)
    (blobs / "cd34").unlink()
    (blobs / "ab12").unlink()
    blobs.rmdir()
    blobs.symlink_to(secret.parent)
    (snapshot / "config.json").unlink()
    (snapshot / "tokenizer.json").unlink()
    (snapshot / "vocab.json").symlink_to("../../blobs/credentials.json")
    with pytest.raises(UsageError, match=r"vocab\.json of"):
        check_links(snapshot)


def test_the_users_own_cache_is_followed_from_anywhere(folder: Path, tmp_path: Path) -> None:
    blobs = tmp_path / "cache" / "models--ada--tiny" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "ab12").write_text("")
    (folder / "model.safetensors").symlink_to(blobs / "ab12")
    check_links(folder)


def test_a_link_that_leads_to_itself_is_refused_and_named(folder: Path) -> None:
    (folder / "tokenizer.json").symlink_to("tokenizer.json")
    with pytest.raises(UsageError, match=r"tokenizer\.json of .* leads to itself"):
        check_links(folder)
