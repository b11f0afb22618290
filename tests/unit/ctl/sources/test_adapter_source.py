"""An adapter to begin with: its base is found and compared before anything is copied."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.hub.listing import HubFile, HubListing
from jupiterd.ctl.hub.model import HubModel
from jupiterd.ctl.hub.names import HubName
from jupiterd.ctl.sources import adapter_source
from jupiterd.ctl.sources.adapter_base import weights_hash
from jupiterd.ctl.sources.adapter_source import tuning_arguments
from jupiterd.cycle.training.adapters.adapter_size import known_matrices
from jupiterd.cycle.training.tensor_shapes import expected_tensors
from jupiterd.errors import BrokenModelError, JupiterError, NotFoundError, UsageError

LLAMA: dict[str, Any] = {
    "model_type": "llama", "vocab_size": 8, "hidden_size": 4, "num_hidden_layers": 2,
    "num_attention_heads": 2, "intermediate_size": 6, "max_position_embeddings": 32,
    "tie_word_embeddings": True,
}  # fmt: skip


def base_in(folder: Path, ones: float = 1.0, **changes: Any) -> Path:
    """Write a base whose numbers are all the same."""
    folder.mkdir()
    fields = LLAMA | changes
    (folder / "config.json").write_text(json.dumps(fields))
    tensors = expected_tensors(fields) or {}
    save_file(
        {name: np.full(shape, ones, np.float32) for name, shape in tensors.items()},
        folder / "model.safetensors",
    )
    return folder


def adapter_in(folder: Path, base: str = "", **said: Any) -> Path:
    folder.mkdir()
    tensors: dict[str, Any] = {}
    for path, (outputs, inputs) in (known_matrices(LLAMA) or {}).items():
        tensors[f"base_model.model.{path}.lora_A.weight"] = np.ones((2, inputs), np.float32)
        tensors[f"base_model.model.{path}.lora_B.weight"] = np.ones((outputs, 2), np.float32)
    save_file(tensors, folder / "adapter_model.safetensors")
    fields = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "base_model_name_or_path": base}
    (folder / "adapter_config.json").write_text(json.dumps(fields | said))
    return folder


def exported_in(folder: Path, base: Path, name: str) -> Path:
    """Write what an export beside a base writes; the cluster calls that by a name and an id."""
    adapter_in(folder, name)
    said = {"name": name, "id": "d" * 64, "weights": weights_hash(base)}
    (folder / "jupiter.json").write_text(json.dumps({"id": "e" * 64, "base": said}))
    return folder


def asked(model: Path | str, adapter: Path | None = None, state: Path = Path()) -> dict[str, Any]:
    return tuning_arguments(str(model), None if adapter is None else str(adapter), Fetches(), state)


def refused(
    model: Path | str, adapter: Path | None = None, kind: type[JupiterError] = UsageError
) -> JupiterError:
    with pytest.raises(kind) as caught:
        asked(model, adapter)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return base_in(tmp_path / "base")


def test_an_adapter_is_named_beside_its_base(base: Path, tmp_path: Path) -> None:
    found = asked(base, adapter_in(tmp_path / "adapter", "nobody/knows"))
    assert found["weights_folder"] == str(base)
    assert found["adapter_folder"] == str(tmp_path / "adapter")
    assert found["lora"] == "rank=2,alpha=4"


def test_an_adapter_alone_is_enough_where_it_names_its_base_by_a_path(
    base: Path, tmp_path: Path
) -> None:
    found = asked(adapter_in(tmp_path / "adapter", "../base"))
    assert (found["model"], found["weights_folder"]) == ("base", str(base))
    assert found["adapter_folder"] == str(tmp_path / "adapter")


def test_an_adapter_that_names_no_base_asks_for_it(tmp_path: Path) -> None:
    error = refused(adapter_in(tmp_path / "adapter"))
    assert "doesn't say which model it is for" in error.message
    assert "--model BASE --adapter FOLDER" in error.hint


def test_a_base_that_is_no_path_and_no_name_of_the_hub_is_asked_of_the_cluster(
    tmp_path: Path,
) -> None:
    error = refused(adapter_in(tmp_path / "adapter", "f" * 64), kind=NotFoundError)
    assert "ffff, which isn't known here" in error.message


def test_an_adapter_of_another_base_is_refused_by_its_sizes(tmp_path: Path) -> None:
    wider = base_in(tmp_path / "wider", hidden_size=8, head_dim=4)
    error = refused(wider, adapter_in(tmp_path / "adapter"))
    assert "mlp.down_proj has 4 outputs there, and 8 in" in error.message
    assert "for another base" in error.message


@pytest.mark.parametrize(
    ("said", "reason"),
    [({"use_dora": 7, "peft_type": "LOHA"}, "of the kind LOHA"), ({"bias": "all"}, "its bias")],
)
def test_what_can_not_be_trained_is_named_with_its_folder(
    base: Path, tmp_path: Path, said: dict[str, Any], reason: str
) -> None:
    error = refused(base, adapter_in(tmp_path / "adapter", **said))
    assert f"the adapter {tmp_path / 'adapter'} can't be trained: " in error.message
    assert reason in error.message


def test_pickles_are_not_read(base: Path, tmp_path: Path) -> None:
    adapter = adapter_in(tmp_path / "adapter")
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    assert "only safetensors are read" in refused(base, adapter).message


def test_a_file_that_is_cut_off_is_named(base: Path, tmp_path: Path) -> None:
    file = adapter_in(tmp_path / "adapter") / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes()[:-9])
    assert "adapter_model.safetensors" in refused(base, file.parent, BrokenModelError).message


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000])
def test_a_configuration_that_can_not_be_read_is_named(
    base: Path, tmp_path: Path, text: str
) -> None:
    adapter = adapter_in(tmp_path / "adapter")
    (adapter / "adapter_config.json").write_text(text)
    assert "adapter_config.json" in refused(base, adapter, BrokenModelError).message


def test_a_folder_without_an_adapter_is_told(base: Path, tmp_path: Path) -> None:
    assert "there is no adapter in" in refused(base, tmp_path, NotFoundError).message


def test_an_export_is_trained_on_beside_its_base_and_beside_no_other_of_its_shapes(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = exported_in(tmp_path / "ours", base, name="mine")
    other = base_in(tmp_path / "other", ones=2.0)
    assert asked(base, ours)["weights_folder"] == str(base)
    error = refused(other, ours)
    assert f"can't be trained: it was trained beside other weights than those of {other}" in str(
        error.message
    )
    assert "--model" in error.hint
    theirs = adapter_in(tmp_path / "theirs", "mine")
    assert asked(other, theirs)["weights_folder"] == str(other), "peft writes no hash"
    monkeypatch.setattr(adapter_source, "of_cluster", lambda *_: str(base))
    assert asked(ours)["weights_folder"] == str(base), "the cluster knows it by its id"


def test_weights_that_are_still_to_be_fetched_are_compared_once_they_are_here(
    base: Path, tmp_path: Path
) -> None:
    model = HubModel(HubListing(HubName("team/base"), "c" * 40, ()), base, (HubFile("w", 1),))
    seen: list[str] = []
    fetches = Fetches([(model, lambda _: seen.append("the first"))])
    fetches.check(base, lambda _: seen.append("the second"))
    assert seen == []
    ((_, look),) = fetches._pending
    look(base)
    assert seen == ["the first", "the second"]
    fetches.check(tmp_path, lambda _: seen.append("at once"))
    assert seen[-1] == "at once"
