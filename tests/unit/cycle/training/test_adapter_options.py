"""The short text of --lora: what it means, and what is said of one that can't be."""

import pytest

from jupiterd.cycle.training.adapters.adapter import AdapterOptions, checked_adapter, parse_adapter
from jupiterd.cycle.training.adapters.adapter_size import adapter_parameters
from jupiterd.cycle.training.adapters.quantized_base import check_quantized, smaller_adapters
from jupiterd.cycle.training.plan import ModelShape, shape_of_config
from jupiterd.daemon.catalog.model_specs import presets
from jupiterd.errors import MissingExtraError, UsageError


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", AdapterOptions(rank=16, alpha=32)),
        ("rank=8", AdapterOptions(rank=8, alpha=16)),
        (" rank = 8 , layers = all ", AdapterOptions(rank=8, alpha=16)),
        ("rank=8.0", AdapterOptions(rank=8, alpha=16)),
        ("rank=1_0", AdapterOptions(rank=10, alpha=20)),
        ("rank=8,alpha=8", AdapterOptions(rank=8, alpha=8)),
        ("layers=4,targets=q_proj+v_proj", AdapterOptions(layers=4, targets="q_proj+v_proj")),
        ("layers=0-3+7-7", AdapterOptions(numbers="0-3+7-7")),
        ("targets=mlp.c_proj", AdapterOptions(targets="mlp.c_proj")),
        ("form=rslora", AdapterOptions(form="rslora")),
        ("dora", AdapterOptions(dora=True)),
        ("rank=8, dora ,dropout=0.1", AdapterOptions(rank=8, alpha=16, dropout=0.1, dora=True)),
        ("dropout=0.12345678", AdapterOptions(dropout=0.12345678)),
        ("dropout=0", AdapterOptions()),
        ("form=rslora,dora", AdapterOptions(form="rslora", dora=True)),
        ("layers=0-0+0-1", AdapterOptions(numbers="0-1")),
        ("layers=4-7+0-3+9-9", AdapterOptions(numbers="0-7+9-9")),
    ],
)
def test_what_a_text_means(text: str, wanted: AdapterOptions) -> None:
    assert parse_adapter(text) == wanted
    assert parse_adapter(wanted.to_text()) == wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("my-run", "my-run is none of rank"),
        ("rank", "rank is none of rank"),
        ("dropout", "dropout is none of rank"),
        ("dropout=1", "dropout=1"),
        ("dropout=-0.1", "dropout=-0.1"),
        ("dropout=nan", "dropout=nan"),
        ("dora=yes", "dora=yes is none of rank"),
        ("dora,dora", "dora is said twice"),
        ("base=x", "base=x is none of rank"),
        ("rank=0", "rank=0"),
        ("rank=9999", "rank=9999"),
        ("rank=many", "rank=many"),
        ("rank=", "rank="),
        ("rank=4,rank=8", "rank is said twice"),
        ("alpha=nan", "alpha=nan"),
        ("alpha=inf", "alpha=inf"),
        ("alpha=0", "alpha=0"),
        ("layers=-1", "layers=-1"),
        ("layers=0", "an adapter needs one layer"),
        ("form=dora", "form=dora"),
        ("targets=q_proj+", "targets=q_proj[+]"),
    ],
)
def test_a_text_that_can_not_be_is_told_in_a_line_with_a_hint(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=f"--lora: {words}") as caught:
        parse_adapter(text)
    assert "\n" not in caught.value.message
    assert "--lora rank=16" in caught.value.hint


def shape_of(kind: str) -> ModelShape:
    config = {
        "model_type": kind, "vocab_size": 512, "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 32,
    }  # fmt: skip
    return shape_of_config(kind, config, presets()[0].recipe)


def test_names_of_modules_are_checked_where_they_are_known() -> None:
    assert adapter_parameters(shape_of("llama"), parse_adapter("rank=2,targets=q_proj")) == 128
    with pytest.raises(UsageError, match="the model has no qkv_proj"):
        adapter_parameters(shape_of("llama"), parse_adapter("targets=qkv_proj"))


def test_more_layers_than_there_are_is_told_with_how_many_there_may_be() -> None:
    with pytest.raises(UsageError, match="the model has 2 layers, not 3") as caught:
        adapter_parameters(shape_of("llama"), parse_adapter("layers=3"))
    assert "at most 2" in caught.value.hint


def test_names_of_modules_that_only_the_trainers_know_are_taken_and_all_are_counted() -> None:
    shape = shape_of("phi3")
    every = adapter_parameters(shape, parse_adapter("rank=2"))
    assert adapter_parameters(shape, parse_adapter("rank=2,targets=qkv_proj")) == every
    assert adapter_parameters(shape, parse_adapter("rank=2,targets=mlp")) < every


def test_parts_may_be_named_together() -> None:
    shape = shape_of("llama")
    both = adapter_parameters(shape, parse_adapter("targets=attention+mlp"))
    assert both == adapter_parameters(shape, parse_adapter("targets=all"))


def test_names_with_a_comma_between_them_are_told_how_they_are_joined() -> None:
    with pytest.raises(UsageError, match="v_proj is none of") as caught:
        parse_adapter("targets=q_proj,v_proj")
    assert "a + between them" in caught.value.hint


def test_a_quantized_base_is_a_part_of_the_one_text():
    options = parse_adapter("rank=8,quantize=4bit")
    assert (options.bits, options.quantize) == (4, "4bit")
    assert parse_adapter(options.to_text()) == options
    assert "quantize" not in parse_adapter("rank=8").to_plain()
    assert parse_adapter("rank=8").bits == 0


def test_islands_of_both_engines_do_not_train_beside_quantized_weights():
    for engines in (["mlx", "mlx"], ["torch"]):
        check_quantized(engines, parse_adapter("quantize=4bit"))
    check_quantized(["mlx", "torch"], parse_adapter("rank=8"))
    check_quantized(["mlx", "torch"], None)
    with pytest.raises(UsageError, match="--quantize 8bit: MLX and torch quantize diff") as caught:
        check_quantized(["torch", "mlx"], parse_adapter("quantize=8bit"))
    assert "--engine torch or --engine mlx" in (caught.value.hint or "")


def test_nodes_that_lack_what_torch_quantizes_by_are_named_with_what_to_install():
    check_quantized(["torch"], parse_adapter("rank=8"), ["attic"])
    with pytest.raises(MissingExtraError, match="--quantize 4bit: attic lacks bitsandbytes") as one:
        check_quantized(["torch"], parse_adapter("quantize=4bit"), ["attic"])
    assert "pip install 'jupiterd[quantized]' there" in (one.value.hint or "")
    with pytest.raises(MissingExtraError, match="attic, cellar lack bitsandbytes"):
        check_quantized(["torch"], parse_adapter("quantize=4bit"), ["attic", "cellar"])


def test_layers_may_be_told_one_by_one() -> None:
    some = adapter_parameters(shape_of("llama"), parse_adapter("rank=2,layers=0-0"))
    assert 2 * some == adapter_parameters(shape_of("llama"), parse_adapter("rank=2"))
    with pytest.raises(UsageError, match="the model has no layer 2") as caught:
        adapter_parameters(shape_of("llama"), parse_adapter("layers=1-2"))
    assert "0-1" in caught.value.hint


def test_layers_that_are_none_are_refused():
    with pytest.raises(UsageError, match="layers=1-0 is no layer") as caught:
        parse_adapter("layers=0-0+1-0")
    assert caught.value.hint == "the lower number comes first, such as layers=3-5"


def test_ranks_of_older_builds_are_told_nothing_of_choices_that_nobody_made():
    """They refuse a field that they don't know."""
    plain = parse_adapter("rank=8").to_plain()
    assert plain.keys() == {"rank", "alpha", "form", "layers", "targets", "base"}
    chosen = parse_adapter("rank=8,dropout=0.1,dora").to_plain()
    assert (chosen["dropout"], chosen["dora"]) == (0.1, True)
    told = parse_adapter("rank=8,layers=0-1").to_plain()
    assert told["numbers"] == "0-1"
    assert AdapterOptions.from_plain(told) == parse_adapter("rank=8,layers=0-1")


def test_dora_has_one_number_for_each_output_more() -> None:
    plain, dora = (
        adapter_parameters(shape_of("llama"), parse_adapter(f"rank=2{more}"))
        for more in ("", ",dora")
    )
    assert dora - plain == 2 * (4 * 16 + 2 * 32 + 16)


def test_the_outputs_of_matrices_that_lie_turned_are_counted() -> None:
    config = {
        "model_type": "gpt2", "vocab_size": 512, "n_embd": 16, "n_layer": 1, "n_head": 2,
        "n_positions": 64,
    }  # fmt: skip
    shape = shape_of_config("gpt2", config, presets()[0].recipe)
    plain, dora = (
        adapter_parameters(shape, parse_adapter(f"rank=2,targets=c_attn{more}"))
        for more in ("", ",dora")
    )
    assert dora - plain == 3 * 16


def test_a_smaller_adapter_has_the_last_of_the_layers_that_were_named() -> None:
    adapter = parse_adapter("layers=2-3+6-7+20-23")
    found = dict(smaller_adapters(adapter, 24))
    assert list(found)[:2] == ["--lora with layers=20-23", "--lora with layers=22-23"]
    assert found["--lora with layers=20-23"] == parse_adapter("layers=20-23")


def test_what_a_domain_says_wrong_is_told_without_the_option_s_name() -> None:
    with pytest.raises(ValueError, match=r"^rank=0: "):
        checked_adapter("rank=0")
