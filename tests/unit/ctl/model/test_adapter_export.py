"""`jupiterctl model export` of an adapter: alone in two forms, and merged with its base."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from safetensors.numpy import load_file

from jupiterd.adapter_folder import join
from jupiterd.ctl.sources.adapter_base import RecordedBase, recorded_base, weights_hash
from tests.support.ctl.model_material import model
from tests.support.workers.tiny_models import write_model
from tests.unit.workers.train.adapters.test_merged_adapters import adapter_to


@pytest.fixture
def stored(tmp_path, daemon) -> Path:
    base = write_model(tmp_path / "base", "llama")
    folder = join(adapter_to(base, tmp_path / "adapter"), base, tmp_path / "joined")
    began_with = {"name": "my-model", "id": "c" * 64}
    trained = {"base": "my-model", "options": "rank=4,alpha=6,quantize=4bit"}
    document = model(files_at=str(folder), began_with=began_with, adapter=trained, val_bpb=1.25)
    daemon.documents["model_export"] = {"model": document}
    return folder


def exported(ctl, to: Path, *how: str) -> Path:
    ran = ctl("model", "export", "python/2", "--to", str(to), *how)
    assert (ran.exit_code, ran.err) == (0, "")
    return to


@pytest.mark.parametrize(("form", "key"), [("hf", "base_model_name_or_path"), ("mlx", "model")])
def test_alone_it_names_its_base_as_people_do_and_says_the_hash_of_its_weights(
    stored, ctl, tmp_path, form, key
):
    folder = exported(ctl, tmp_path / "out", "--format", form)
    said = json.loads((folder / "adapter_config.json").read_text())
    assert said[key] == "my-model"
    assert not (folder / "config.json").exists()
    weights = weights_hash(tmp_path / "base")
    assert recorded_base(folder) == RecordedBase("my-model", "c" * 64, weights)
    card = (folder / "README.md").read_text()
    assert f"by which Jupiter tells them, is `{weights}`" in card
    assert "jupiterctl model export cccccccc --to my-model" in card


def test_the_card_says_what_the_adapter_is(stored, ctl, tmp_path):
    card = (exported(ctl, tmp_path / "out") / "README.md").read_text()
    for row in (
        "| rank | 4 |",
        "| alpha | 12 |",
        "| dropout | 0 |",
        "| base while it was trained | 4bit |",
    ):
        assert row in card
    assert "| targets | mlp.down\\_proj, " in card
    assert "**1.2500 bits per byte**" in card


def test_a_folder_of_the_base_s_name_is_not_its_base(stored, ctl, tmp_path):
    folder = exported(ctl, tmp_path / "my-model")
    said = json.loads((folder / "adapter_config.json").read_text())
    assert said["base_model_name_or_path"] == "my-model-base"
    assert "--to my-model-base" in (folder / "README.md").read_text()


@pytest.mark.filterwarnings("ignore::FutureWarning")  # peft 0.21 asks transformers by an old name
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_the_card_says_loads_it(stored, ctl, tmp_path, monkeypatch):
    pytest.importorskip("peft", reason="pip install peft==0.21.2 accelerate")
    card = (exported(ctl, tmp_path / "out") / "README.md").read_text()
    (tmp_path / "base").rename(tmp_path / "my-model")  # as the card has the cluster write it
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    found: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        exec(code, found)
    assert [each for each in warned if "Unexpected keyword" in str(each.message)] == []
    weights = dict(found["model"].named_parameters())
    ours = load_file(tmp_path / "out" / "adapter_model.safetensors")
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
    theirs = weights[name.replace(".weight", ".default.weight")]
    assert (theirs.detach().numpy() == ours[name]).all()
    assert found["tokenizer"].vocab_size > 0


def test_for_mlx_its_factors_lie_the_other_way_round(stored, ctl, tmp_path):
    folder = exported(ctl, tmp_path / "out", "--format", "mlx")
    ours, theirs = (
        load_file(stored / "adapter_model.safetensors"),
        load_file(folder / "adapters.safetensors"),
    )
    name = "model.layers.0.self_attn.q_proj"
    first = ours[f"base_model.model.{name}.lora_A.weight"]
    assert (theirs[f"{name}.lora_a"] == first.T).all()


def test_a_whole_model_has_the_base_in_it(stored, ctl, tmp_path):
    folder = exported(ctl, tmp_path / "out", "--merge")
    assert "model.layers.0.self_attn.q_proj.weight" in load_file(folder / "model.safetensors")
    assert not (folder / "adapter_config.json").exists()


def test_a_gguf_file_is_a_whole_model(stored, ctl, tmp_path):
    ran = ctl("model", "export", "python/2", "--to", str(tmp_path / "out"), "--format", "gguf")
    assert ran.exit_code == 2
    assert "add --merge" in ran.err


@pytest.fixture
def theirs(tmp_path) -> Path:
    """An adapter's folder that names its base by a path; nothing of it is in the cluster."""
    adapter = adapter_to(write_model(tmp_path / "whole", "llama"), tmp_path / "theirs")
    said = json.loads((adapter / "adapter_config.json").read_text())
    said["base_model_name_or_path"] = str(tmp_path / "whole")
    (adapter / "adapter_config.json").write_text(json.dumps(said))
    return adapter


def test_a_folder_of_others_is_merged_with_the_base_that_it_names(theirs, daemon, ctl, tmp_path):
    ran = ctl("model", "export", str(theirs), "--merge", "--to", str(tmp_path / "out"))
    assert (ran.exit_code, ran.err) == (0, "")
    assert "theirs for transformers" in ran.out
    whole = load_file(tmp_path / "out" / "model.safetensors")
    base = load_file(tmp_path / "whole" / "model.safetensors")
    name = "model.layers.0.self_attn.q_proj.weight"
    assert (whole[name] != base[name]).any()
    card = (tmp_path / "out" / "README.md").read_text()
    assert "others made it, and its base" in card
    assert daemon.executed == []


def test_a_folder_of_others_becomes_mlx_lm_s_and_that_one_is_no_folder_of_peft(
    theirs, ctl, tmp_path
):
    of_mlx = tmp_path / "for-mlx"
    ran = ctl("model", "export", str(theirs), "--format", "mlx", "--to", str(of_mlx))
    assert (ran.exit_code, ran.err) == (0, "")
    assert (of_mlx / "adapters.safetensors").is_file()
    again = ("model", "export", str(of_mlx), "--base", str(tmp_path / "whole"))
    ran = ctl(*again, "--to", str(tmp_path / "out"))
    assert ran.exit_code == 2
    assert "mlx-lm's form, which peft doesn't read" in ran.err
    assert "add --merge" in ran.err
    assert ctl(*again, "--merge", "--to", str(tmp_path / "out")).exit_code == 0


def test_a_folder_of_others_becomes_one_gguf_file_with_its_base(theirs, ctl, tmp_path):
    to = tmp_path / "gguf"
    ran = ctl("model", "export", str(theirs), "--format", "gguf", "--to", str(to))
    assert ran.exit_code == 2
    assert "add --merge" in ran.err
    ran = ctl("model", "export", str(theirs), "--merge", "--format", "gguf", "--to", str(to))
    assert (ran.exit_code, ran.err) == (0, "")
    assert (to / "model.gguf").read_bytes()[:4] == b"GGUF"


def test_held_out_text_is_of_models_of_the_cluster(theirs, ctl, tmp_path):
    ran = ctl("model", "export", str(theirs), "--lm-eval", "--to", str(tmp_path / "out"))
    assert ran.exit_code == 2
    assert "takes a model of the cluster" in ran.err
