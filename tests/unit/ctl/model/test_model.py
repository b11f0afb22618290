"""`jupiterctl model ...`: what it prints, and the folders that it writes."""

import json
import sys
from pathlib import Path

import pytest

from jupiterd.errors import StudentOnTrialError
from tests.support.ctl.model_material import DETAILS, MODELS, model, row, verdict_document

CONVERTER = """#!{python}
import pathlib, sys
import gguf_beside_it
folder, _, out, *_ = sys.argv[1:]
class TextModel:
    def get_vocab_base_pre(self, tokenizer):
        raise NotImplementedError("BPE pre-tokenizer was not recognized")
class Qwen3Model(TextModel):
    pass
split = Qwen3Model().get_vocab_base_pre(None)
if "{fails}":
    print("{fails}", file=sys.stderr)
    sys.exit(1)
weights = pathlib.Path(folder, "model.safetensors").read_bytes()
pathlib.Path(out).write_bytes(b"GGUF" + split.encode() + weights)
"""


@pytest.fixture
def stored(tmp_path):
    """A checkpoint of a tiny model, as the store has it."""
    pytest.importorskip("torch")
    from tests.support.workers.tiny_models import write_model

    folder = write_model(tmp_path / "stored", "llama")
    (folder / "training_state").mkdir()
    (folder / "training_state" / "optimizer.safetensors").write_bytes(b"moments")
    return folder


def exported(daemon, stored, **more):
    document = model(files_at=str(stored), **more)
    daemon.documents["model_export"] = {"schema": "jupiter/v1", "model": document}


def converter(folder: Path, fails: str = "") -> Path:
    path = folder / "convert_hf_to_gguf.py"
    path.write_text(CONVERTER.format(python=sys.executable, fails=fails))
    path.chmod(0o755)
    (folder / "gguf_beside_it.py").write_text("")
    return path


def test_the_list_shows_every_model(daemon, ctl, golden):
    daemon.documents["models"] = {"schema": "jupiter/v1", "models": MODELS}
    golden("model_list.txt", ctl("model", "list").out)
    lines = ctl("model", "list", "-o", "jsonl").out.splitlines()  # one model a line
    assert [json.loads(line)["name"] for line in lines] == [model["name"] for model in MODELS]
    assert json.loads(lines[2])["writes"] is True
    daemon.documents["models"]["models"] = [row(number, name="notes") for number in (2, 1)]
    *_, hint = ctl("model", "list").out.splitlines()
    assert hint == "a name that stands here twice means the upper one; the ID names the other"
    daemon.documents["models"]["models"] = []
    assert ctl("model", "list").out == "no model has been trained yet\n"


def test_a_model_is_shown_with_its_data_its_training_and_what_it_writes(daemon, ctl, golden):
    daemon.documents["model"] = {"schema": "jupiter/v1", "model": model()}
    ran = ctl("model", "show", "python/2")
    assert (ran.exit_code, ran.err) == (0, "")
    assert "\x1b" not in ran.out
    golden("model_show.txt", ran.out)
    told = json.loads(ctl("model", "show", "python/2", "-o", "json").out)["model"]
    assert told["completions"] == DETAILS["completions"]
    base = {"name": "SmolLM2-135M", "id": "f" * 64}
    daemon.documents["model"]["model"]["began_with"] = base
    daemon.documents["model"]["model"]["promoted"] = True
    shown = ctl("model", "show", "x").out
    assert "began with  SmolLM2-135M (ffffffff), a model of others\n" in shown
    assert "promoted    it is its cycle's promoted model\n" in shown


def test_an_adapter_is_told_with_its_base_and_its_rank(daemon, ctl):
    adapter = {"base": "SmolLM2-135M", "options": "rank=16,alpha=32"}
    rows = [row(1, adapter=adapter)]
    daemon.documents["models"] = {"schema": "jupiter/v1", "models": rows}
    assert "adapter of SmolLM2-135M" in ctl("model", "list").out
    daemon.documents["model"] = {"schema": "jupiter/v1", "model": model(adapter=adapter)}
    shown = ctl("model", "show", "x").out
    assert "adapter     of SmolLM2-135M: rank=16,alpha=32\n" in shown


def test_what_is_not_known_of_a_model_is_left_out(daemon, ctl):
    empty = dict.fromkeys(DETAILS, None) | {"log": [], "completions": [], "machines": {}}
    bare = row(0, kind="generator", verdict=None, val_bpb=None, name="org/writer") | empty
    daemon.documents["model"] = {"schema": "jupiter/v1", "model": bare}
    ran = ctl("model", "show", "org/writer")
    assert ran.exit_code == 0
    assert ran.out.splitlines()[0].endswith("a generator that others made")


@pytest.mark.parametrize(
    "command", [("show",), ("export", "--to", "./out"), ("promote", "--yes")], ids=lambda c: c[0]
)
def test_a_folder_is_no_model_of_the_cluster_and_that_is_said_before_anybody_is_asked(ctl, command):
    name, *more = command
    ran = ctl("model", name, "./my-model", *more)
    assert (ran.exit_code, ran.out) == (2, "")
    assert f"model {name} takes a model of the cluster, and my-model is a folder" in ran.err
    assert "jupiterctl model list" in ran.err


def test_an_export_loads_in_transformers_and_mlx_lm(daemon, ctl, stored, tmp_path):
    """A Llama, whose rope base transformers 5 writes where mlx-lm doesn't look."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    exported(daemon, stored)
    ran = ctl("model", "export", "python/2", "--to", str(tmp_path / "out"))
    assert (ran.exit_code, ran.err) == (0, "")
    assert ran.out.startswith(f"{tmp_path}/out: python/2 for transformers\n  README.md  ")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"] == 5e5
    assert not (tmp_path / "out" / "training_state").exists()
    ours = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert AutoTokenizer.from_pretrained(tmp_path / "out")("bread")["input_ids"]
    tokens = torch.arange(40)[None]
    with torch.inference_mode():
        expected = AutoModelForCausalLM.from_pretrained(stored)(tokens).logits
        assert torch.equal(ours(tokens).logits, expected)
    mx, utils = pytest.importorskip("mlx.core"), pytest.importorskip("mlx_lm.utils")
    loaded, _ = utils.load_model(tmp_path / "out")
    found = torch.tensor(loaded(mx.arange(40)[None]).tolist())
    assert (found - expected).abs().max() < 1e-4


@pytest.mark.parametrize("form", ["hf", "mlx"])
def test_an_export_has_its_settings_marks_and_template_to_the_last_byte(
    daemon, ctl, stored, tmp_path, form
):
    said = {
        "generation_config.json": '{"eos_token_id": [2, 5], "temperature": 0.7, "top_p": 0.9}',
        "added_tokens.json": '{"<tool>": 319}',
        "special_tokens_map.json": '{"pad_token": "<pad>"}',
        "chat_template.jinja": "{{ messages[0].content }}\n",
    }
    for name, text in said.items():
        (stored / name).write_text(text)
    before = json.loads((stored / "config.json").read_text())
    exported(daemon, stored)
    ctl("model", "export", "python/2", "--format", form, "--to", str(tmp_path / "out"))
    for name, text in said.items():
        assert (tmp_path / "out" / name).read_text() == text
    after = json.loads((tmp_path / "out" / "config.json").read_text())
    ids = ("bos_token_id", "eos_token_id", "pad_token_id")
    assert [after.get(name) for name in ids] == [before.get(name) for name in ids]


def test_the_card_says_what_it_was_made_of_and_how(daemon, ctl, golden, stored, tmp_path):
    verdict = verdict_document(tmp_path)
    began_with = {"name": "Tiny|Llama", "id": "f" * 64}
    exported(daemon, stored, verdict_document=verdict, began_with=began_with)
    ran = ctl("model", "export", "python", "--to", str(tmp_path / "out"), "-o", "json")
    assert json.loads(ran.out)["parameters"] == 36_000
    card = (tmp_path / "out" / "README.md").read_text()
    assert "\x1b" not in card
    golden("model_card.txt", card)
    record = json.loads((tmp_path / "out" / "jupiter.json").read_text())
    assert record["verdict_document"] == verdict
    assert "files_at" not in record


def test_the_card_of_a_model_of_which_little_is_known_says_so(daemon, ctl, stored, tmp_path):
    empty = {"data": None, "log": [], "completions": [], "verdict": None, "val_bpb": None}
    exported(daemon, stored, **empty)
    assert (
        ctl("model", "export", "x", "--format", "mlx", "--to", str(tmp_path / "o")).exit_code == 0
    )
    card = (tmp_path / "o" / "README.md").read_text()
    assert "library_name: mlx" in card
    assert card.count("Not known here.") == 2
    assert "No gate has judged it." in card


def test_the_card_of_a_run_tells_what_was_trained_on_and_where_its_text_lies(
    daemon, ctl, stored, tmp_path
):
    told = {
        "kind": "run",
        "data": {"tokens": 500_000, "documents": 9, "contents": None},
        "log": [
            {"round": 1, "steps": 3, "tokens": 12_288, "points": [], "epochs": [], "phases": {}}
        ],
        "sources": [{"name": "docs", "kind": "folder", "license": "", "address": ""}],
        "verdict": None,
    }
    exported(daemon, stored, **told)
    assert ctl("model", "export", "docs", "--to", str(tmp_path / "o")).exit_code == 0
    card = (tmp_path / "o" / "README.md").read_text()
    assert "500,000 tokens, 9 samples (in the data set)." in card
    assert "Trained on 12,288 tokens of it, 0.025 passes over it." in card
    assert "| docs | folder of a machine | nobody stated one |" in card
    assert "can't be said" not in card


def test_nothing_is_overwritten_and_nothing_half_is_left(daemon, ctl, stored, tmp_path):
    exported(daemon, stored)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    ran = ctl("model", "export", "python/2", "--to", str(tmp_path / "mine"))
    assert (ran.exit_code, ran.err.splitlines()[0]) == (
        7, f"jupiterctl: error: {tmp_path}/mine is there already",
    )  # fmt: skip
    (stored / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0nonsense")
    (tmp_path / "there").mkdir()
    broken = ctl("model", "export", "python/2", "--to", str(tmp_path / "there" / "out"))
    assert broken.exit_code == 1
    assert "can't be read" in broken.err
    assert list((tmp_path / "there").iterdir()) == []


def splitting_otherwise(stored: Path) -> Path:
    """Let its tokenizer be one that has no name in llama.cpp."""
    said = json.loads((stored / "tokenizer.json").read_text())
    said["pre_tokenizer"]["add_prefix_space"] = True
    (stored / "tokenizer.json").write_text(json.dumps(said))
    return stored


def test_a_gguf_is_made_here_with_tokenizer_and_template(daemon, ctl, stored, tmp_path):
    gguf = pytest.importorskip("gguf")
    (stored / "chat_template.jinja").write_text("{{ messages[0].content }}")
    exported(daemon, stored)
    ran = ctl("model", "export", "python/2", "--format", "gguf", "--to", str(tmp_path / "out"))
    assert (ran.exit_code, ran.err) == (0, "")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "README.md", "jupiter.json", "model.gguf",
    ]  # fmt: skip
    fields = gguf.GGUFReader(tmp_path / "out" / "model.gguf").fields
    said = {name: fields[f"tokenizer.{name}"].contents() for name in ("chat_template", "ggml.pre")}
    assert said == {"chat_template": "{{ messages[0].content }}", "ggml.pre": "gpt-2"}
    assert fields["general.name"].contents() == "python/2"
    assert len(fields["tokenizer.ggml.tokens"].data) == 320
    card = (tmp_path / "out" / "README.md").read_text()
    assert "Jupiter made it: matrices are rounded to 16 bits" in card
    assert "It is a chat model" in card


def test_what_is_not_known_here_says_where_to_get_a_converter(
    daemon, ctl, stored, tmp_path, monkeypatch
):
    pytest.importorskip("gguf")
    exported(daemon, splitting_otherwise(stored))
    monkeypatch.setenv("PATH", str(tmp_path))
    to = ("--format", "gguf", "--to", str(tmp_path / "out"))
    ran = ctl("model", "export", "python/2", *to)
    assert ran.exit_code == 1
    assert "no tokenizer that splits text so is written as GGUF here" in ran.err
    assert "isn't on PATH" in ran.err
    assert "hint: git clone https://github.com/ggml-org/llama.cpp" in ran.err
    named = ctl("model", "export", "python/2", *to, "--converter", str(tmp_path / "none.py"))
    assert named.exit_code == 6


def test_a_converter_that_is_named_makes_the_gguf(daemon, ctl, stored, tmp_path):
    exported(daemon, stored)
    tools = tmp_path / "tools"
    tools.mkdir()
    program = converter(tools)
    to = ("model", "export", "python/2", "--format", "gguf", "--converter", str(program), "--to")
    ran = ctl(*to, str(tmp_path / "one"))
    assert (ran.exit_code, ran.err) == (0, "")
    assert (tmp_path / "one" / "model.gguf").read_bytes().startswith(b"GGUFgpt-2")
    assert "llama.cpp's convert_hf_to_gguf.py made it" in (tmp_path / "one/README.md").read_text()
    converter(tools, fails="ValueError: no such architecture")
    failed = ctl(*to, str(tmp_path / "two"))
    assert failed.exit_code == 1
    assert "made no GGUF file: ValueError: no such architecture" in failed.err
    assert not (tmp_path / "two").exists()


def test_a_tokenizer_that_splits_otherwise_is_left_to_the_converter(
    daemon, ctl, stored, tmp_path, monkeypatch
):
    exported(daemon, splitting_otherwise(stored))
    monkeypatch.setenv("PATH", str(converter(tmp_path).parent))
    ran = ctl("model", "export", "python/2", "--format", "gguf", "--to", str(tmp_path / "out"))
    assert ran.exit_code == 1
    assert "NotImplementedError: BPE pre-tokenizer was not recognized" in ran.err


def test_a_promotion_that_ends_another_s_trial_needs_a_yes(daemon, ctl):
    told = "student m2 writes a tenth of round 3 as its trial, which ends where k1 takes its place"
    daemon.refusals["model.promote"] = StudentOnTrialError(told, "say so with --yes")
    ran = ctl("model", "promote", "k1")
    assert ran.exit_code == 7
    first, _, hint = ran.err.splitlines()
    assert (first, hint) == (f"jupiterctl: error: {told}", "hint: say so with --yes")
    daemon.refusals.clear()
    daemon.results["model.promote"] = {"student": "k1", "from_round": 3}
    assert ctl("model", "promote", "k1", "--yes").exit_code == 0
    sent = [arguments for _, arguments in daemon.executed]
    assert sent == [{"model": "k1", "replaces": True}]
