"""A torch model made from a shape.

Owns the model's making. Doesn't know training, nor files.
"""

import torch
from transformers.models.qwen3.modeling_qwen3 import Qwen3ForCausalLM

from jupiterd.cycle.plan import ModelShape
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.model_config import model_config


def make_model(shape: ModelShape, seed: int, end_token: int = 0) -> Qwen3ForCausalLM:
    """Return a model (float32, CPU) whose weights depend on nothing but the shape and the seed."""
    with torch.random.fork_rng(devices=[]):
        model = Qwen3ForCausalLM(model_config(shape, end_token))
    parameters = dict(model.named_parameters())
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    with torch.no_grad():
        for name, values in first_weights(shapes, seed).items():
            parameters[name].copy_(torch.from_numpy(values))
    return model.float()
