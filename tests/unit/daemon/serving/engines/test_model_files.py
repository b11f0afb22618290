"""What the daemon itself reads of a model's folder, which may be a stranger's."""

from pathlib import Path

import pytest

from jupiterd.daemon.serving.engines import model_files as reading
from jupiterd.daemon.serving.engines.model_files import model_files
from jupiterd.errors import CorruptArtifactError


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
