"""The gradient of a matrix that is both the embedding and the output layer, on torch."""

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig

from jupiterd.cycle.training.plan import shape_of_config
from jupiterd.workers.train.torch.loss_model import LossModel
from jupiterd.workers.train.torch.torch_model import learn_used_rows, make_model, named_parameters
from tests.support.workers.tiny_engine import tiny_engine, tiny_plan
from tests.support.workers.tiny_run import SEQ_LEN, VOCAB, tiny_shape


def gradients(architecture: str, *, of_used_rows: bool) -> dict[str, Tensor]:
    """Return those of two micro batches, in which some tokens are read again and most never."""
    sizes = {
        "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "pad_token_id": 0,
    }  # fmt: skip
    config = AutoConfig.for_model(architecture, tie_word_embeddings=True, **sizes).to_dict()
    shape = shape_of_config(architecture, config, tiny_shape().recipe)
    model = make_model(shape.model_copy(update={"seq_len": SEQ_LEN}), 0)
    if of_used_rows:
        learn_used_rows(model)
    loss = LossModel(model, tiny_engine(tiny_plan()).options, "cpu")
    torch.manual_seed(2)
    for ids in torch.randint(0, VOCAB // 4, (2, 2, SEQ_LEN + 1)):
        (loss(ids[:, :-1], ids[:, 1:]) * 0.01).backward()
    found = {name: parameter.grad for name, parameter in named_parameters(model).items()}
    return {name: gradient for name, gradient in found.items() if gradient is not None}


@pytest.mark.parametrize("architecture", ["qwen3", "llama"])
def test_it_is_the_same_whether_all_rows_or_used_ones_are_added(architecture: str):
    wanted, found = (gradients(architecture, of_used_rows=used) for used in (False, True))
    assert found.keys() == wanted.keys()
    for name, gradient in found.items():
        assert gradient.layout == torch.strided, f"{name} is shared, shortened and kept as others"
        assert torch.allclose(gradient, wanted[name], rtol=1e-5, atol=1e-7), name
