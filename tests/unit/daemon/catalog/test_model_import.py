"""A generator on its way into the cluster: a real folder into a real store."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.adapter_folder import base_named_in
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.catalog.model_import import ModelImport
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId
from jupiterd.protocol.commands.cycle_commands import StartCycle
from jupiterd.protocol.commands.train_commands import StartTraining
from tests.support.daemon.two_nodes import serving

pytestmark = pytest.mark.net

ASKED = StartCycle(domain_name="python", domain_yaml="")


def brings(node: Node) -> ModelImport:
    return ModelImport(node.identity.node_id, node.artifact_cache.store, node.state_dir.spool)


async def test_a_folder_becomes_an_artifact_without_pickles_and_programs(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors", "chat_template.jinja"):
        (folder / name).write_text(name)
    for name in ("pytorch_model.bin", "modeling.py", "consolidated.safetensors"):
        (folder / name).write_text("no")
    told = replace(ASKED, generator={"name": "mine"}, generator_folder=str(folder), rounds=2)
    async with serving(tmp_path, "one") as one:
        brought = await brings(one).bring_models(told)
        assert brought == replace(told, generator=brought.generator, generator_folder=None)
        assert brought.generator is not None
        kept = one.artifact_cache.store.path(ArtifactId(str(brought.generator["artifact"])))
        assert {path.name for path in kept.rglob("*") if path.is_file()} >= {
            "config.json", "tokenizer.json", "model.safetensors", "chat_template.jinja",
        }  # fmt: skip
        assert not list(kept.rglob("*.bin"))
        assert not list(kept.rglob("*.py"))
        assert [path.name for path in kept.rglob("*.safetensors")] == ["model.safetensors"]
        assert not list(one.state_dir.spool.iterdir())
        with pytest.raises(NotFoundError, match="holds no safetensors"):
            await brings(one).bring_models(replace(told, generator_folder=str(tmp_path / "gone")))


async def test_a_file_of_this_machine_that_a_folder_only_links_to_is_taken_by_nobody(
    tmp_path: Path,
) -> None:
    (tmp_path / "id_ed25519").write_text("secret")
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text(name)
    (folder / "merges.txt").symlink_to("../id_ed25519")
    told = replace(ASKED, generator={"name": "mine"}, generator_folder=str(folder))
    async with serving(tmp_path, "one") as one:
        with pytest.raises(UsageError, match=r"merges\.txt of .* is a link that leads out of it"):
            await brings(one).bring_models(told)
        assert not list(one.state_dir.spool.iterdir())


async def test_a_server_of_this_machine_alone_is_asked_by_this_node_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        own = {"name": "m", "url": "http://localhost:1/v1", "model": "m"}
        brought = await brings(one).bring_models(replace(ASKED, generator=own))
        assert brought.generator == own | {"node": one.identity.node_id}
        elsewhere = own | {"url": "http://box:1/v1"}
        asked = replace(ASKED, generator=elsewhere)
        assert await brings(one).bring_models(asked) == asked
        assert await brings(one).bring_models(ASKED) == ASKED
        brought = await brings(one).bring_models(replace(asked, judge=own))
        assert brought == replace(asked, judge=own | {"node": one.identity.node_id})


async def test_a_model_to_begin_with_comes_with_its_tokenizer(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text(name)
    init = {"model": "base", "config": "{}", "weights_folder": str(folder)}
    told = replace(ASKED, init=init, rounds=2)
    async with serving(tmp_path, "one") as one:
        with pytest.raises(NotFoundError, match=r"base holds no tokenizer\.json"):
            await brings(one).bring_models(told)
        (folder / "tokenizer.json").write_text("tokenizer.json")
        brought = await brings(one).bring_models(told)
        assert brought.init is not None
        assert brought.init.keys() == {"model", "config", "weights", "is_chat"}
        kept = one.artifact_cache.store.path(ArtifactId(str(brought.init["weights"])))
        assert {path.name for path in kept.iterdir()} == {
            "config.json", "tokenizer.json", "model.safetensors",
        }  # fmt: skip


TRAINED = StartTraining(model="mine", asked_at="2026-01-01T00:00:00Z")


def theirs(tmp_path: Path, base: str) -> StartTraining:
    """Return a command with a folder of weights, and one of an adapter that names them so."""
    for folder, names in (("mine", ("config.json", "model.safetensors")), ("adapter", ("a.py",))):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_text(name)
    (tmp_path / "adapter" / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": base})
    )
    (tmp_path / "adapter" / "adapter_model.safetensors").write_text("tensors")
    where = str(tmp_path / "mine"), str(tmp_path / "adapter")
    return replace(TRAINED, weights_folder=where[0], adapter_folder=where[1])


async def test_an_adapter_becomes_an_artifact_of_its_two_files(tmp_path: Path) -> None:
    told = theirs(tmp_path, "some/model")
    async with serving(tmp_path, "one") as one:
        brought = await brings(one).bring_weights(told)
        assert (brought.adapter_folder, brought.weights_folder) == (None, None)
        kept = one.artifact_cache.store.path(ArtifactId(brought.adapter or ""))
        names = {path.name for path in kept.iterdir()}
        assert names == {"adapter_config.json", "adapter_model.safetensors"}
        assert base_named_in(kept) == brought.weights, "so that both together are a model"


async def test_a_cycle_s_first_model_comes_with_its_adapter(tmp_path: Path) -> None:
    told = theirs(tmp_path, "some/model")
    (tmp_path / "mine" / "tokenizer.json").write_text("tokenizer.json")
    folders = {"weights_folder": told.weights_folder, "adapter_folder": told.adapter_folder}
    asked = replace(ASKED, init={"model": "mine", "config": "{}", **folders})
    async with serving(tmp_path, "one") as one:
        brought = (await brings(one).bring_models(asked)).init or {}
        assert brought.keys() == {"model", "config", "weights", "is_chat", "adapter"}
        store = one.artifact_cache.store
        both = store.model_path(ArtifactId(str(brought["adapter"])))
        assert (both / "config.json").is_file()
        assert (both / "adapter_model.safetensors").read_text() == "tensors"


async def test_an_adapter_that_names_other_weights_by_their_content_is_refused(
    tmp_path: Path,
) -> None:
    told = theirs(tmp_path, "b" * 64)
    async with serving(tmp_path, "one") as one:
        with pytest.raises(UsageError, match="is for the weights bbbbbbbb, not"):
            await brings(one).bring_weights(told)
