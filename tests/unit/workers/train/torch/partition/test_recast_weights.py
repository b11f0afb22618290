"""What autograd keeps of weights that are multiplied in 16 bits."""

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from jupiterd.workers.train.torch.partition import recast_weights
from jupiterd.workers.train.torch.partition.recast_weights import Cast


def gradients(model: nn.Module, x: Tensor, context: saved_tensors_hooks) -> list[Tensor]:
    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False), context:
        loss = model(x).float().square().sum()
    return list(torch.autograd.grad(loss, list(model.parameters())))


def test_a_cast_weight_is_made_again_and_gradients_are_the_same_bits():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16, bias=False), nn.GELU(), nn.Linear(16, 4))
    x = torch.randn(2, 3, 8)
    kept: list[object] = []

    def save(tensor: Tensor) -> object:
        kept.append(recast_weights._saved(tensor))
        return kept[-1]

    wanted = gradients(model, x, saved_tensors_hooks(lambda t: t, lambda t: t))
    found = gradients(model, x, saved_tensors_hooks(save, recast_weights._used))
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    casts = [each for each in kept if isinstance(each, Cast)]
    # The first layer's input wants no gradient, so its weight isn't kept at all.
    assert [each.weight is model[2].weight for each in casts] == [True]
    copies = [each for each in kept if isinstance(each, Tensor) and each.shape == (16, 4)]
    assert not copies
