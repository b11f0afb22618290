"""An adapter's product, added in the place of its base's: the gradients are those of the sum."""

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.pytorch_utils import Conv1D

from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.workers.train.torch.torch_adapter import AdaptedLinear

INPUTS, OUTPUTS, RANK = 5, 7, 2


def bases() -> dict[str, nn.Module]:
    torch.manual_seed(5)
    found = {
        "with a bias": nn.Linear(INPUTS, OUTPUTS),
        "without": nn.Linear(INPUTS, OUTPUTS, bias=False),
        "turned": Conv1D(OUTPUTS, INPUTS),
    }
    return {name: base.double().requires_grad_(False) for name, base in found.items()}


def adapted(kind: str) -> AdaptedLinear:
    module = AdaptedLinear(bases()[kind], AdapterOptions(rank=RANK, alpha=3.0)).double()
    torch.manual_seed(6)
    for factor in (module.lora_A, module.lora_B):
        nn.init.normal_(factor)
    return module


def plain(module: AdaptedLinear, x: Tensor) -> Tensor:
    """What it stands for, in the words of the paper."""
    return module.base(x.contiguous()) + 1.5 * (x @ module.lora_A.T) @ module.lora_B.T


def grads(module: AdaptedLinear, found: Tensor, x: Tensor) -> list[Tensor]:
    # A square and a sigmoid after it keep what the module gave: nothing may write over it.
    loss = (found.square() * torch.sigmoid(found)).sum()
    wanted = [module.lora_A, module.lora_B, *([x] if x.requires_grad else [])]
    return [found.detach(), *torch.autograd.grad(loss, wanted)]


@pytest.mark.parametrize("kind", ["with a bias", "without", "turned"])
@pytest.mark.parametrize("is_first", [True, False], ids=["the first layer", "a later layer"])
@pytest.mark.parametrize("form", ["straight", "turned inputs", "computed again"])
def test_gradients_are_those_of_the_sum(kind: str, form: str, *, is_first: bool):
    module = adapted(kind)
    torch.manual_seed(7)
    x = torch.randn(3, 4, INPUTS, dtype=torch.float64, requires_grad=not is_first)
    given = x.transpose(0, 1) if form == "turned inputs" else x
    again = form == "computed again"
    found = checkpoint(module, given, use_reentrant=False) if again else module(given)
    for ours, theirs in zip(
        grads(module, found, x), grads(module, plain(module, given), x), strict=True
    ):
        assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["with a bias", "without", "turned"])
def test_gradients_are_those_of_small_differences(kind: str):
    module = adapted(kind)

    def computed(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        factors = {"lora_A": first, "lora_B": second}
        return torch.func.functional_call(module, factors, (x,)).sigmoid()

    torch.manual_seed(8)
    x = torch.randn(2, 3, INPUTS, dtype=torch.float64, requires_grad=True)
    factors = [p.detach().clone().requires_grad_() for p in (module.lora_A, module.lora_B)]
    assert torch.autograd.gradcheck(computed, (x, *factors))


@pytest.mark.parametrize("kind", ["with a bias", "without", "turned"])
@pytest.mark.parametrize("is_frozen_in_bf16", [True, False])
def test_products_in_bf16_are_those_of_the_sum(kind: str, *, is_frozen_in_bf16: bool):
    module = adapted(kind).float()
    if is_frozen_in_bf16:
        module.base.bfloat16()
    torch.manual_seed(9)
    x = torch.randn(3, 4, INPUTS, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        ours, theirs = (grads(module, found, x) for found in (module(x), plain(module, x)))
    assert ours[0].dtype == torch.bfloat16
    for one, other in zip(ours, theirs, strict=True):
        apart = torch.linalg.norm(one.float() - other.float())
        assert apart < 0.02 * torch.linalg.norm(other.float())
