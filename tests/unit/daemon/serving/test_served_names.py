"""Which models one way in gives access to."""

from pathlib import Path

import pytest

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving import served_names
from jupiterd.daemon.serving.served_names import AllNames, ListedNames
from jupiterd.errors import JupiterError, ModelNotServedError, UsageError
from tests.unit.daemon.catalog.test_model_catalog import FIRST, SECOND
from tests.unit.daemon.serving.test_named_models import PROMOTED, state_of


class Known:
    state = state_of(*PROMOTED)


def test_a_list_gives_its_own_names_and_no_others():
    names = ListedNames(Known(), ["python/2", "promoted", "nobody"])
    assert names.names() == ["python/2", "promoted"]
    assert names.model("promoted").artifact == FIRST
    assert names.model("").artifact == SECOND, "the first is meant where none is named"
    for other in ("python/1", "/etc", "nobody"):
        with pytest.raises(ModelNotServedError):
            names.model(other)


def test_a_folder_in_a_list_is_called_by_its_last_part_and_clients_name_no_paths(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "tokenizer.json").touch()
    names = ListedNames(Known(), [str(tmp_path), "promoted"])
    assert names.names() == [tmp_path.name, "promoted"]
    found = names.model(tmp_path.name)
    assert (found.name, found.folder) == (tmp_path.name, str(tmp_path))
    with pytest.raises(ModelNotServedError):
        names.model(str(tmp_path))


def test_this_machine_s_user_has_all_names_and_folders(tmp_path: Path):
    names = AllNames(Known())
    assert names.names() == ["promoted", "python/2", "python/1"]
    assert names.model("").artifact == FIRST
    with pytest.raises(ModelNotServedError, match="there is no model in"):
        names.model(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelNotServedError, match="it has no weights as safetensors") as caught:
        names.model(str(tmp_path))
    assert "its tokenizer and its weights" in caught.value.hint
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "tokenizer_config.json").touch()
    with pytest.raises(ModelNotServedError, match="it has no tokenizer") as caught:
        names.model(str(tmp_path))
    assert "copy tokenizer.json" in caught.value.hint
    (tmp_path / "tokenizer.model").touch()
    found = names.model(str(tmp_path))
    assert (found.artifact, found.folder) == (None, str(tmp_path))


def test_the_folder_of_an_adapter_alone_is_no_model(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "adapter_config.json").write_text("{}")
    (tmp_path / "adapter_model.safetensors").touch()
    with pytest.raises(ModelNotServedError, match="holds a LoRA adapter, not a model") as caught:
        AllNames(Known()).model(str(tmp_path))
    assert "merge" in caught.value.hint


def test_a_path_that_no_system_takes_is_no_model():
    with pytest.raises(ModelNotServedError, match="there is no model in"):
        AllNames(Known()).model(f"/{'x' * 300}")


def test_a_listed_name_that_means_several_models_by_now_hides_no_others(
    monkeypatch: pytest.MonkeyPatch,
):
    named = served_names.served_model

    def meant(state: State, name: str) -> ServedModel:
        if name == "ab":
            raise UsageError("several ids begin with ab")
        return named(state, name)

    monkeypatch.setattr(served_names, "served_model", meant)
    names = ListedNames(Known(), ["ab", "promoted"])
    assert names.names() == ["promoted"]
    with pytest.raises(JupiterError, match="several"):
        names.model("ab")
