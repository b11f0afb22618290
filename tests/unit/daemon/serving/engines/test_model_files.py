"""What the daemon itself reads of a model's folder, which may be a stranger's."""

import json
from pathlib import Path

import pytest

from jupiterd.adapter_folder import join
from jupiterd.daemon.serving.engines import model_files as reading
from jupiterd.daemon.serving.engines.model_files import check_shapes, model_files
from jupiterd.errors import CorruptArtifactError, CorruptWeightsError
from tests.support.workers.tiny_models import write_model


def test_a_model_with_a_template_can_chat(tmp_path: Path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    assert not model_files("key", "name", tmp_path).has_template
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    assert model_files("key", "name", tmp_path).has_template


@pytest.mark.parametrize("file", ["tokenizer_config.json", "chat_template.jinja"])
def test_a_model_knows_tools_whose_template_has_a_place_for_them(tmp_path: Path, file: str):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    for template, knows in (("{{ messages }}", False), ("{% if tools %}{% endif %}", True)):
        said = template if file.endswith("jinja") else f'{{"chat_template": "{template}"}}'
        (tmp_path / file).write_text(said)
        found = model_files("key", "name", tmp_path)
        assert (found.has_template, found.knows_tools) == (True, knows)


@pytest.mark.parametrize("text", ["[" * 200_000, "{", "[]", '"text"'])
def test_a_config_that_can_not_be_read_is_no_model(tmp_path: Path, text: str):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CorruptArtifactError):
        model_files("key", "name", tmp_path)


def test_a_config_that_would_fill_memory_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reading, "MOST_JSON_BYTES", 10)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(CorruptArtifactError):
        model_files("key", "name", tmp_path)


def test_the_shapes_of_an_adapter_s_model_are_those_of_its_base(tmp_path: Path):
    base, adapter = write_model(tmp_path / "base", "llama"), tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "org/base"}')
    (adapter / "adapter_model.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
    check_shapes(model_files("key", "name", join(adapter, base, tmp_path / "joined")))
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"intermediate_size": 8}))
    with pytest.raises(CorruptWeightsError, match=r"config\.json says"):
        check_shapes(model_files("key", "name", join(adapter, base, tmp_path / "wider")))
