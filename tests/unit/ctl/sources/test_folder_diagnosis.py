"""What a model's folder holds is told at the command, in one line, before anything is copied."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.sources.model_source import model_arguments
from jupiterd.cycle.training.tensor_shapes import expected_tensors
from jupiterd.errors import CorruptArtifactError, JupiterError, NotFoundError, UsageError

LLAMA: Mapping[str, Any] = {
    "model_type": "llama", "vocab_size": 8, "hidden_size": 4, "num_hidden_layers": 1,
    "num_attention_heads": 2, "max_position_embeddings": 32, "tie_word_embeddings": True,
}  # fmt: skip
EMBEDDING, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"


def folder_of(place: Path, **changes: Any) -> Path:
    """Write a folder with a configuration and one whole file of weights."""
    folder = place / "theirs"
    folder.mkdir()
    fields = {key: value for key, value in {**LLAMA, **changes}.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(fields))
    save_file({EMBEDDING: ones()}, folder / "model.safetensors")
    return folder


def ones() -> np.ndarray:
    return np.ones((8, 4), dtype=np.float32)


def refused(folder: Path, kind: type[JupiterError] = UsageError) -> JupiterError:
    with pytest.raises(kind) as caught:
        model_arguments(f"{folder}", Fetches())
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def write_kind(path: Path, kind: str, name: str = "model.norm.weight") -> None:
    """Write one tensor of a kind that numpy doesn't have."""
    head = json.dumps({name: {"dtype": kind, "shape": [4], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(4))


def test_a_whole_folder_is_taken(tmp_path: Path):
    asked = model_arguments(str(folder_of(tmp_path)), Fetches())
    assert asked["weights_folder"] == str((tmp_path / "theirs").resolve())


def test_an_adapter_is_called_one_with_or_without_a_configuration(tmp_path: Path):
    folder = folder_of(tmp_path)
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "org/base"}')
    (folder / "config.json").unlink()
    error = refused(folder)
    assert "holds a LoRA adapter for org/base, not a model" in error.message
    assert "merge_and_unload" in error.hint


def test_an_adapter_of_ours_becomes_a_model_by_our_own_command(tmp_path: Path):
    folder = folder_of(tmp_path)
    said = json.dumps({"base_model_name_or_path": "3f2a91bc" + "0" * 56})
    (folder / "adapter_config.json").write_text(said)
    error = refused(folder)
    assert error.message.endswith("holds a LoRA adapter for 3f2a91bc, not a model")
    assert "jupiterctl model export RUN --merge" in error.hint


def test_weights_of_eight_bits_are_named(tmp_path: Path):
    folder = folder_of(tmp_path)
    write_kind(folder / "model.safetensors", "F8_E4M3")
    assert "dtype F8_E4M3 (model.norm.weight)" in refused(folder).message


def test_masks_that_old_files_hold_beside_the_weights_are_no_weights(tmp_path: Path):
    folder = folder_of(tmp_path)
    write_kind(folder / "model-00002-of-00002.safetensors", "U8", "h.0.attn.bias")
    assert "weights_folder" in model_arguments(str(folder), Fetches())


def test_the_file_that_is_missing_is_named(tmp_path: Path):
    folder = folder_of(tmp_path)
    names = [f"model-0000{n}-of-00006.safetensors" for n in range(1, 7)]
    (folder / "model.safetensors").rename(folder / names[0])
    weight_map = {str(n): name for n, name in enumerate(names)}
    text = json.dumps({"weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(text)
    error = refused(folder, CorruptArtifactError)
    assert "lacks model-00002-of-00006.safetensors and 4 more" in error.message


def test_a_file_that_is_cut_off_is_named(tmp_path: Path):
    folder = folder_of(tmp_path)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-16])
    assert "16 bytes are missing" in refused(folder, CorruptArtifactError).message


def test_an_output_layer_that_contradicts_the_configuration_is_told(tmp_path: Path):
    folder = folder_of(tmp_path)
    save_file({EMBEDDING: ones(), OUTPUT: 2 * ones()}, folder / "model.safetensors")
    words = "an output layer of its own (lm_head.weight) despite tie_word_embeddings: true"
    assert words in refused(folder).message
    save_file({EMBEDDING: ones(), OUTPUT: ones()}, folder / "model.safetensors")
    assert "weights_folder" in model_arguments(str(folder), Fetches()), (
        "the same matrix, saved twice"
    )


def test_one_that_says_nothing_of_ties_is_read_as_transformers_reads_it(tmp_path: Path):
    folder = folder_of(tmp_path, tie_word_embeddings=None)
    save_file({EMBEDDING: ones(), OUTPUT: 2 * ones()}, folder / "model.safetensors")
    assert "weights_folder" in model_arguments(str(folder), Fetches()), (
        "Llama has its own output layer"
    )


@pytest.mark.parametrize("name", ["pytorch_model.bin", "consolidated.00.pth", "model.gguf"])
def test_other_forms_of_weights_are_refused_and_it_is_told_how_to_convert_them(
    tmp_path: Path, name: str
):
    folder = folder_of(tmp_path)
    (folder / "model.safetensors").rename(folder / name)
    error = refused(folder)
    assert f"weights as {name}" in error.message
    assert "save_pretrained" in error.hint


def test_what_nobody_knows_is_refused_before_its_weights_are_looked_at(tmp_path: Path):
    folder = folder_of(tmp_path, model_type="lama")
    (folder / "model.safetensors").write_bytes(b"")
    error = refused(folder)
    assert "is a 'lama' model, and no causal language model is known by that name" in error.message
    assert "the nearest is llama" in error.hint


def test_a_folder_without_a_configuration_is_no_model(tmp_path: Path):
    folder = folder_of(tmp_path)
    (folder / "config.json").unlink()
    assert "there is no config.json in" in refused(folder, NotFoundError).message


def test_the_nearest_of_a_name_that_goes_on_is_what_it_begins_with(tmp_path: Path):
    folder = folder_of(tmp_path, model_type="gpt_neox_reward_model")
    assert "the nearest is gpt_neox" in refused(folder).hint


def test_weights_of_another_model_than_the_configuration_s_are_told(tmp_path: Path):
    told = refused(folder_of(tmp_path, vocab_size=12))
    assert f"have {EMBEDDING} of 8 x 4, and its config.json says 12 x 4" in told.message
    (tmp_path / "wide").mkdir()
    assert "says 8 x 6" in refused(folder_of(tmp_path / "wide", hidden_size=6)).message


def test_an_embedding_may_be_narrower_than_what_follows(tmp_path: Path):
    """As in one size of OPT."""
    opt = {"model_type": "opt", "word_embed_proj_dim": 4, "hidden_size": 6}
    assert model_arguments(str(folder_of(tmp_path, **opt)), Fetches())["weights_folder"]


WHOLE: Mapping[str, Any] = {**LLAMA, "intermediate_size": 6, "num_hidden_layers": 2}
"""A configuration that says all sizes."""


def whole_folder(place: Path, **changes: Any) -> Path:
    """Write a folder whose weights are those of WHOLE, whatever its configuration says."""
    folder = folder_of(place, **{**WHOLE, **changes})
    save_file(tensors(), folder / "model.safetensors")
    return folder


def tensors() -> dict[str, np.ndarray]:
    shapes = expected_tensors(WHOLE)
    assert shapes
    return {name: np.zeros(shape, dtype=np.float32) for name, shape in shapes.items()}


def test_all_tensors_are_compared_with_the_configuration(tmp_path: Path):
    assert "weights_folder" in model_arguments(str(whole_folder(tmp_path)), Fetches())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_hidden_layers": 3}, "hold no model.layers.2.self_attn.q_proj.weight, which"),
        ({"num_hidden_layers": 1}, "hold model.layers.1.input_layernorm.weight, which its"),
        ({"intermediate_size": 7}, "have model.layers.0.mlp.gate_proj.weight of 6 x 4, and its"),
        ({"num_key_value_heads": 1}, "self_attn.k_proj.weight of 4 x 4, and its config.json says"),
        ({"attention_bias": True}, "hold no model.layers.0.self_attn.q_proj.bias"),
        ({"tie_word_embeddings": False}, "hold no lm_head.weight"),
        ({"model_type": "arcee", "num_hidden_layers": 5}, "have 2 layers, and its config.json"),
    ],
)
def test_a_configuration_of_another_model_is_refused_in_the_command(
    tmp_path: Path, changes: Mapping[str, Any], words: str
):
    assert words in refused(whole_folder(tmp_path, **changes)).message


@pytest.mark.parametrize(
    ("name", "is_taken"),
    [("model.layers.0.self_attn.rotary_emb.inv_freq", True), ("score.weight", False)],
)
def test_a_tensor_that_the_model_has_not_is_told_and_old_buffers_are_none(
    tmp_path: Path, name: str, *, is_taken: bool
):
    folder = whole_folder(tmp_path)
    save_file({**tensors(), name: np.zeros(2, dtype=np.float32)}, folder / "model.safetensors")
    if is_taken:
        assert "weights_folder" in model_arguments(str(folder), Fetches())
    else:
        assert f"hold {name}, which its config.json hasn't" in refused(folder).message


def test_files_that_leave_out_the_first_part_of_each_name_are_taken(tmp_path: Path):
    folder = whole_folder(tmp_path)
    shortened = {name.removeprefix("model."): values for name, values in tensors().items()}
    save_file(shortened, folder / "model.safetensors")
    assert "weights_folder" in model_arguments(str(folder), Fetches())


def test_a_tokenizer_of_another_model_is_refused_in_the_command(tmp_path: Path):
    folder = whole_folder(tmp_path)
    vocabulary = {"a": 0, "b": 7, "</s>": 1}
    write_tokenizer(folder, vocabulary, "</s>")
    assert "weights_folder" in model_arguments(str(folder), Fetches())
    write_tokenizer(folder, vocabulary, "<|im_end|>")
    assert "its tokenizer has no <|im_end|>, which ends a text" in refused(folder).message
    write_tokenizer(folder, vocabulary, None)
    assert "its tokenizer names no token that ends a text" in refused(folder).message
    write_tokenizer(folder, {**vocabulary, "c": 8}, "</s>")
    words = "has a token with the id 8, and its weights know 8 tokens"
    assert words in refused(folder).message
    (folder / "tokenizer.json").write_text("[1]")
    assert "the tokenizer of" in refused(folder, CorruptArtifactError).message


def write_tokenizer(folder: Path, vocabulary: Mapping[str, int], end: str | None) -> None:
    said = {"model": {"type": "BPE", "vocab": vocabulary, "merges": []}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(said))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": end}))
