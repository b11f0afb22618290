"""What others' adapters say of themselves, and which of them are taken."""

from typing import Any

import pytest

from jupiterd.cycle.training.adapters.adapter import layer_ranges
from jupiterd.cycle.training.adapters.adapter_files import AdapterFiles, read_adapter
from jupiterd.cycle.training.adapters.adapter_size import known_matrices
from jupiterd.errors import UsageError

PEFT: dict[str, Any] = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "bias": "none"}
LLAMA = {
    "model_type": "llama", "vocab_size": 512, "hidden_size": 16, "num_hidden_layers": 4,
    "num_attention_heads": 2, "intermediate_size": 32,
}  # fmt: skip
GPT2 = {"model_type": "gpt2", "vocab_size": 512, "n_embd": 16, "n_layer": 2, "n_positions": 64}
ATTENTION = tuple(f"self_attn.{letter}_proj" for letter in "qkvo")


def tensors(
    places: tuple[str, ...] = ATTENTION,
    layers: tuple[int, ...] = (0, 1, 2, 3),
    config: Any = LLAMA,
    rank: int = 8,
) -> dict[str, tuple[int, ...]]:
    matrices = known_matrices(config) or {}
    found: dict[str, tuple[int, ...]] = {}
    for path, (outputs, inputs) in matrices.items():
        if any(f"s.{n}.{p}" in path or f"h.{n}.{p}" in path for n in layers for p in places):
            found[f"base_model.model.{path}.lora_A.weight"] = (rank, inputs)
            found[f"base_model.model.{path}.lora_B.weight"] = (outputs, rank)
    return found


def read(said: dict[str, Any] | None = None, **which: Any) -> AdapterFiles:
    return read_adapter(PEFT | (said or {}), tensors(**which))


def words(files: AdapterFiles, config: Any = LLAMA) -> str:
    return files.fitted(known_matrices(config) or {}, "the base").to_text()


@pytest.mark.parametrize(
    ("which", "wanted"),
    [
        ({}, "rank=8,alpha=16,targets=attention"),
        ({"places": ("",)}, "rank=8,alpha=16"),
        ({"layers": (2, 3)}, "rank=8,alpha=16,layers=2,targets=attention"),
        ({"layers": (0, 1, 3)}, "rank=8,alpha=16,targets=attention,layers=0-1+3-3"),
        ({"places": ATTENTION[:1]}, "rank=8,alpha=16,targets=q_proj"),
    ],
)
def test_the_tensors_say_which_modules_have_one(which: dict[str, Any], wanted: str) -> None:
    assert words(read(**which)) == wanted


def test_a_module_whose_name_others_have_is_called_by_its_path() -> None:
    files = read(places=("attn.c_proj",), layers=(0, 1), config=GPT2)
    assert words(files, GPT2) == "rank=8,alpha=16,targets=attn.c_proj"


@pytest.mark.parametrize(
    "said",
    [
        {"target_modules": r".*\.(q|k|v|o)_proj"},
        {"target_modules": "all-linear", "exclude_modules": ["down_proj"]},
        {"fan_in_fan_out": True, "init_lora_weights": "gaussian", "lora_bias": False},
        {"rank_pattern": {"w_proj": 3}, "alpha_pattern": {"w_proj": 3}},
        {"r": 64, "rank_pattern": {"q_proj": 8, "k_proj": 8, "v_proj": 8, "o_proj": 8}},
        {"lora_alpha": 4, "alpha_pattern": {"self_attn.q_proj": 16, "k_proj": 16,
                                            "v_proj": 16, "o_proj": 16}},
        {"lora_alpha": 16.0, "alpha_pattern": {"q_proj": 16}},
        {"lora_dropout": None},
    ],
)  # fmt: skip
def test_what_comes_to_one_rank_and_one_alpha_is_taken(said: dict[str, Any]) -> None:
    assert words(read(said)) == "rank=8,alpha=16,targets=attention"


def test_a_rank_stabilized_one_is_taken_as_such() -> None:
    assert read({"use_rslora": True}).options.form == "rslora"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"peft_type": "IA3"}, "of the kind IA3"),
        ({"bias": "lora_only"}, "its bias is lora_only"),
        ({"modules_to_save": ["lm_head"]}, r"its modules_to_save says \['lm_head'\]"),
        ({"layer_replication": [[0, 2]]}, "its layer_replication says"),
        ({"trainable_token_indices": [1]}, "its trainable_token_indices says"),
        ({"init_lora_weights": "pissa"}, "its init_lora_weights is pissa"),
        ({"alpha_pattern": {"q_proj": 3}}, r"its alpha_pattern gives several \(3, 16\)"),
        ({"alpha_pattern": {"(a+)+$": 3}}, "a regular expression"),
        ({"lora_alpha": None}, "its lora_alpha is None"),
        ({"lora_alpha": "nan"}, "its lora_alpha is nan"),
        ({"lora_alpha": -1}, "its alpha is -1"),
        ({"lora_dropout": 1.0}, "its lora_dropout is 1"),
        ({"lora_dropout": "much"}, "its lora_dropout is much"),
        ({"use_dora": True}, "holds no .*lora_magnitude_vector"),
    ],
)
def test_what_is_not_taken_is_named(said: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        read(said)
    assert caught.value.hint


def magnitudes(ending: str = "") -> dict[str, tuple[int, ...]]:
    return {
        name.replace(".lora_B.weight", f".lora_magnitude_vector{ending}"): shape[:1]
        for name, shape in tensors().items()
        if ".lora_B." in name
    }


@pytest.mark.parametrize("ending", ["", ".weight", ".default.weight", ".default"])
def test_dora_is_taken_with_any_name_that_peft_has_had_for_its_magnitude(ending: str) -> None:
    found = read_adapter(PEFT | {"use_dora": True}, tensors() | magnitudes(ending))
    assert words(found) == "rank=8,alpha=16,targets=attention,dora"


def test_its_dropout_is_taken_over() -> None:
    assert words(read({"lora_dropout": 0.05})) == "rank=8,alpha=16,targets=attention,dropout=0.05"


def test_magnitudes_of_one_that_is_not_dora_are_named() -> None:
    with pytest.raises(UsageError, match="doesn't say that it is DoRA"):
        read_adapter(PEFT, tensors() | magnitudes())


def test_magnitudes_of_another_base_are_told_by_their_sizes() -> None:
    files = read_adapter(PEFT | {"use_dora": True}, tensors() | magnitudes())
    with pytest.raises(UsageError, match="k_proj has 16 outputs there, and 8 in the base"):
        files.fitted(known_matrices(LLAMA | {"num_key_value_heads": 1}) or {}, "the base")


def test_several_ranks_are_named() -> None:
    shapes = tensors(ATTENTION[:1], rank=4) | tensors(ATTENTION[1:])
    with pytest.raises(UsageError, match=r"several ranks \(4, 8; rank_pattern\)"):
        read_adapter(PEFT | {"rank_pattern": {"q_proj": 4}}, shapes)


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ({}, "no tensors"),
        ({"base_model.model.lm_head.lora_A.weight": (8, 16)}, "lm_head, which is no part"),
        ({"base_model.model.lm_head.weight": (8, 16)}, "which is no factor"),
        ({"base_model.model.model.layers.0.a.lora_A.weight": (8,)}, "which is no factor"),
        ({"base_model.model.model.layers.0.a.lora_A.weight": (8, 16)}, "holds no .*lora_B"),
    ],
)
def test_tensors_that_are_no_whole_adapter_are_named(
    shapes: dict[str, tuple[int, ...]], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        read_adapter(PEFT, shapes)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"hidden_size": 32}, "q_proj has 16 inputs there, and 32 in the base"),
        ({"num_hidden_layers": 2}, "the base has no model.layers.2.self_attn.q_proj"),
        ({"num_key_value_heads": 1}, "k_proj has 16 outputs there, and 8 in the base"),
    ],
)
def test_an_adapter_of_another_base_is_told_by_its_sizes(
    changed: dict[str, int], reason: str
) -> None:
    with pytest.raises(UsageError, match=f"for another base: .*{reason}"):
        read().fitted(known_matrices(LLAMA | changed) or {}, "the base")


def of_mlx() -> dict[str, tuple[int, ...]]:
    return {
        name.removeprefix("base_model.model.")
        .replace(".lora_A.weight", ".lora_a")
        .replace(".lora_B.weight", ".lora_b"): shape[::-1]
        for name, shape in tensors(layers=(2, 3)).items()
    }


def test_a_folder_of_mlx_lm_has_its_factors_turned_and_a_whole_scale() -> None:
    said = {"fine_tune_type": "lora", "model": "some/base", "lora_parameters": {"scale": 20.0}}
    files = read_adapter(said, of_mlx())
    assert words(files) == "rank=8,alpha=160,layers=2,targets=attention"
    assert files.base == "some/base"
    assert all(tensor.is_turned for tensor in files.tensors.values())
    with pytest.raises(UsageError, match="of the kind full"):
        read_adapter(said | {"fine_tune_type": "full"}, of_mlx())


def test_mlx_lm_s_dora_has_magnitudes_that_lie_as_peft_s_do() -> None:
    said = {"fine_tune_type": "dora", "lora_parameters": {"scale": 2.0, "dropout": 0.1}}
    lengths = {
        name.replace(".lora_b", ".m"): shape[1:]
        for name, shape in of_mlx().items()
        if name.endswith(".lora_b")
    }
    files = read_adapter(said, of_mlx() | lengths)
    assert words(files) == "rank=8,alpha=16,layers=2,targets=attention,dropout=0.1,dora"
    magnitude = files.tensors[
        "base_model.model.model.layers.2.self_attn.q_proj.lora_magnitude_vector"
    ]
    assert (magnitude.shape, magnitude.is_turned) == ((16,), False)


def test_layers_are_told_in_ranges() -> None:
    assert layer_ranges([3, 0, 1, 5]) == "0-1+3-3+5-5"


def test_layers_with_unlike_modules_are_refused() -> None:
    mixed = tensors(layers=(0,)) | tensors(places=ATTENTION[:1])
    with pytest.raises(UsageError, match="other modules in one layer than in another"):
        words(read_adapter(PEFT, mixed))


def test_a_configuration_of_another_adapter_is_told_by_its_rank() -> None:
    with pytest.raises(UsageError, match="its r is 7, and its tensors have 8") as caught:
        read({"r": 7})
    assert "another adapter's" in caught.value.hint
