"""The output step is the model's own, on both engines, and may be taken a few tokens at a time."""

from typing import Any, cast

import pytest
import torch
from torch.nn import functional
from transformers import AutoConfig

from jupiterd.cycle.training.plan import shape_of_config
from jupiterd.workers.train.torch.loss_model import LossModel
from jupiterd.workers.train.torch.torch_model import CausalModel, make_model
from tests.support.workers.tiny_engine import tiny_engine, tiny_plan
from tests.support.workers.tiny_run import SEQ_LEN, VOCAB, tiny_shape

PLAIN = ("gpt2", "gpt_neox", "llama", "mistral", "olmo2", "phi3", "qwen2", "smollm3", "hrm_text")
MORE_THAN_A_PRODUCT = {
    "granite": {"logits_scaling": 4.0},
    "gemma2": {"head_dim": 8, "final_logit_softcapping": 5.0},
    "cohere": {"logit_scale": 0.5},
    "phi": {},
}
"""Scaled, capped, scaled, and with a bias."""


FEW = 5
"""Tokens whose logits exist at a time."""


def model_of(kind: str, **changes: Any) -> CausalModel:
    sizes = {
        "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0,
        "max_position_embeddings": 64,
    }  # fmt: skip
    if kind == "hrm_text":
        changes |= {"head_dim": 8, "num_hidden_layers": 1}
    config = AutoConfig.for_model(kind, **{**sizes, **changes}).to_dict()
    shape = shape_of_config(kind, config, tiny_shape().recipe)
    made = make_model(shape.model_copy(update={"seq_len": SEQ_LEN}), 1).eval()
    for parameter in made.parameters():
        parameter.data.mul_(8.0)  # logits so large that a cap shows
    if (bias := dict(made.named_parameters()).get("inner.lm_head.bias")) is not None:
        bias.data.fill_(0.5)
    return cast("CausalModel", made)


def whole(model: Any, ids: torch.Tensor) -> torch.Tensor:
    return model.inner(input_ids=ids, use_cache=False).logits


@pytest.mark.parametrize("kind", PLAIN)
def test_a_plain_output_is_hidden_states_times_the_layer(kind: str):
    model, ids = model_of(kind), torch.randint(0, VOCAB, (2, SEQ_LEN))
    with torch.no_grad():
        assert model.is_plain
        found = model.hidden(ids) @ model.output_weight.t()
        torch.testing.assert_close(found, whole(model, ids), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("kind", sorted(MORE_THAN_A_PRODUCT))
def test_any_other_output_step_is_the_models_own(kind: str):
    model = model_of(kind, **MORE_THAN_A_PRODUCT[kind])
    ids = torch.randint(0, VOCAB, (1, SEQ_LEN))
    with torch.no_grad():
        assert not model.is_plain
        expected = whole(model, ids)[0]
        torch.testing.assert_close(model.logits(model.hidden(ids)[0]), expected)
        product = (model.hidden(ids) @ model.output_weight.t())[0]
        assert not torch.allclose(product, expected, atol=1e-2)


@pytest.mark.parametrize("kind", sorted(MORE_THAN_A_PRODUCT))
def test_its_loss_by_parts_has_the_gradients_of_the_whole(kind: str):
    # The weights are large, so sums taken in another order would differ in 32 bits.
    model = cast("Any", model_of(kind, **MORE_THAN_A_PRODUCT[kind])).double()
    ids, targets = torch.randint(0, VOCAB, (2, 2, SEQ_LEN))
    loss = functional.cross_entropy(
        whole(model, ids).flatten(0, 1), targets.flatten(), reduction="sum"
    )
    loss.backward()
    expected = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    found = LossModel(model, tiny_engine(tiny_plan()).options, "cpu", FEW)(ids, targets)
    found.backward()
    torch.testing.assert_close(found, loss.float())
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], atol=1e-3, rtol=1e-4)
