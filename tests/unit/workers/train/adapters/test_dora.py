"""DoRA on both engines: the losses of peft and of mlx-lm, and of each other."""

# pyright: reportPrivateUsage=false

from typing import Any

import numpy as np
import pytest
import torch

from jupiterd.cycle.training.adapters.adapter import (
    FACTORS,
    MAGNITUDE,
    AdapterOptions,
    module_of,
    tensor_name,
)
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.workers.train.model_config import model_config
from jupiterd.workers.train.torch.torch_adapter import AdaptedLinear
from jupiterd.workers.training_engine import BETAS, EPSILON, Tensors
from tests.unit.workers.train.adapters import test_adapter_engines
from tests.unit.workers.train.adapters.test_adapter_engines import (
    ENGINES,
    KINDS,
    RATE,
    STEPS,
    base_of,
    losses,
    on_mlx,
    on_torch,
    shape_of,
)
from tests.unit.workers.train.adapters.test_adapter_gradients import bases
from tests.unit.workers.train.adapters.test_quantized_base import wide_shape
from tests.unit.workers.train.architectures.test_mlx_models import batch

LORA = "rank=4,dora"
DECAY = 0.1
PEFT = "pip install peft==0.21.2 accelerate"
ignore_old_names = pytest.mark.filterwarnings("ignore::FutureWarning")
"""peft 0.21 asks transformers by an old name."""


def of_transformers(kind: str) -> Any:
    from transformers import AutoModelForCausalLM

    shape = shape_of(kind)
    whole = AutoModelForCausalLM.from_config(model_config(shape))
    weights = {name: torch.from_numpy(values) for name, values in base_of(shape).items()}
    whole.load_state_dict(weights, strict=False)
    return whole


def peft_losses(model: Any) -> list[float]:
    """Train as a script with peft does; lengths aren't made shorter for their own sake."""
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1], "weight_decay": DECAY},
        {"params": [p for p in trained if p.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=EPSILON)
    (given,) = batch()
    ids, wanted = torch.from_numpy(given.inputs), torch.from_numpy(given.targets).flatten()
    found: list[float] = []
    for _ in range(STEPS):
        loss = torch.nn.functional.cross_entropy(model(ids).logits.flatten(0, 1), wanted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found


@ignore_old_names
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_torch_trains_as_a_script_with_peft_does(kind: str) -> None:
    peft: Any = pytest.importorskip("peft", reason=PEFT)
    ours = on_torch(shape_of(kind), LORA)
    targets = sorted({module_of(name)[0].rpartition(".")[2] for name in ours.weights()})
    how = {"r": 4, "lora_alpha": 8, "use_dora": True, "fan_in_fan_out": kind == "gpt2"}
    config = peft.LoraConfig(**how, target_modules=targets)
    theirs = peft.get_peft_model(of_transformers(kind), config)
    begun = {name: torch.from_numpy(values) for name, values in ours.weights().items()}
    for name, values in peft.get_peft_model_state_dict(theirs).items():
        if name.endswith(MAGNITUDE):
            assert torch.allclose(values, begun[name], rtol=1e-6)
    assert not peft.set_peft_model_state_dict(theirs, begun).unexpected_keys
    assert losses(ours) == pytest.approx(peft_losses(theirs), abs=1e-5)


@pytest.mark.mlx
def test_mlx_trains_as_mlx_lm_does() -> None:
    mx: Any = pytest.importorskip("mlx.core")
    ours: Any = on_mlx(shape_of("llama"), LORA)
    theirs = of_mlx_lm(ours)
    assert losses(ours) == pytest.approx(mlx_losses(theirs, mx), abs=1e-5)


def of_mlx_lm(engine: Any) -> Any:
    """Return mlx-lm's own model with its own DoRA, and the numbers of an engine's."""
    import mlx.core as mx
    from mlx_lm.tuner.utils import linear_to_lora_layers

    from jupiterd.workers.train.architectures.mlx_module import MlxModule

    module = MlxModule(model_config(shape_of("llama")))
    module.update({name: mx.array(values) for name, values in base_of(shape_of("llama")).items()})
    theirs: Any = module.inner
    theirs.freeze()
    places = {module_of(name)[0].split(".", 3)[3] for name in engine.weights()}
    how = {"rank": 4, "scale": 2.0, "dropout": 0.0, "keys": places}
    linear_to_lora_layers(theirs, len(theirs.layers), how, use_dora=True)
    held = as_mlx_has_them(engine.weights())
    theirs.load_weights([(name, mx.array(values)) for name, values in held.items()], strict=False)
    return theirs


def as_mlx_has_them(tensors: Tensors) -> Tensors:
    found: dict[str, Any] = {}
    for path in dict.fromkeys(module_of(name)[0] for name in tensors):
        for factor in FACTORS:
            found[f"{path}.{factor.lower()}"] = tensors[tensor_name(path, factor)].T
        found[f"{path}.m"] = tensors[tensor_name(path, MAGNITUDE)]
    return found


def is_length(name: str, _: object) -> bool:
    return name.endswith(".m")


def mlx_losses(model: Any, mx: Any) -> list[float]:
    import mlx.nn as nn_of_mlx
    from mlx import optimizers

    nn: Any = nn_of_mlx
    (given,) = batch()
    ids, wanted = (mx.array(each.astype(np.int32)) for each in (given.inputs, given.targets))

    def loss_of(called: Any) -> Any:
        return nn.losses.cross_entropy(called(ids), wanted, reduction="mean")

    usual: dict[str, Any] = {"betas": list(BETAS), "eps": EPSILON, "bias_correction": True}
    optimizer = optimizers.MultiOptimizer(
        [optimizers.AdamW(RATE, weight_decay=decay, **usual) for decay in (0.0, DECAY)],
        [is_length],
    )
    gradient_of, found = nn.value_and_grad(model, loss_of), list[float]()
    for _ in range(STEPS):
        loss, gradients = gradient_of(model)
        clipped, _ = optimizers.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, clipped)
        mx.eval(model.parameters(), optimizer.state)
        found.append(loss.item())
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_both_engines_train_the_same_dora(kind: str) -> None:
    ours, theirs = on_torch(shape_of(kind), LORA), on_mlx(shape_of(kind), LORA)
    for name, values in ours.weights().items():
        assert np.array_equal(values, theirs.weights()[name]), name
    assert losses(ours) == pytest.approx(losses(theirs), abs=1e-4)
    for name, values in ours.weights().items():
        assert np.allclose(values, theirs.weights()[name], atol=1e-4), name


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_dora_changes_nothing(kind: str, engine: str) -> None:
    dora, plain = (ENGINES[engine](shape_of(kind), lora) for lora in (LORA, "rank=4"))
    assert dora.nats(batch()) == pytest.approx(plain.nats(batch()), rel=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_layers_keep_may_be_computed_twice(kind: str, engine: str) -> None:
    kept = ENGINES[engine](shape_of(kind), LORA)
    again = ENGINES[engine](shape_of(kind), LORA, gradient_checkpointing="on")
    assert losses(again, 5) == pytest.approx(losses(kept, 5), abs=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_magnitudes_learn_where_matrices_are_multiplied_in_bf16(engine: str) -> None:
    shape = shape_of("llama")
    dora, whole = ENGINES[engine](shape, LORA, precision="bf16"), on_torch(shape, LORA)
    found, wanted = losses(dora), losses(whole)
    assert found == pytest.approx(wanted, abs=0.01)
    begun = on_torch(shape, LORA).weights()
    for name in filter(lambda name: name.endswith(MAGNITUDE), begun):
        moved, of = (each.weights()[name] - begun[name] for each in (dora, whole))
        assert np.linalg.norm(moved - of) < 0.3 * np.linalg.norm(of), name


@pytest.mark.mlx
@pytest.mark.parametrize("quantize", ["8bit", "4bit"])
def test_dora_learns_beside_a_quantized_base(quantize: str) -> None:
    whole = losses(on_mlx(wide_shape(), LORA))
    found = losses(on_mlx(wide_shape(), f"{LORA},quantize={quantize}"))
    assert found[-1] < found[0] - 0.1
    assert found == pytest.approx(whole, abs={"8bit": 0.003, "4bit": 0.05}[quantize])


def changed(kind: str) -> AdaptedLinear:
    options = AdapterOptions(rank=2, alpha=3.0, dora=True)
    module = AdaptedLinear(bases()[kind], options).double()
    torch.manual_seed(6)
    for part in module.parameters():
        if part.requires_grad:
            torch.nn.init.normal_(part)
    return module


def by_the_paper(module: Any, x: torch.Tensor) -> torch.Tensor:
    """What it stands for: the direction of W + BA times a length; the norm learns nothing."""
    matrix = module.base.weight
    matrix = matrix if matrix.shape[0] == len(module.lora_B) else matrix.T
    total = matrix + 1.5 * module.lora_B @ module.lora_A
    lengths = torch.linalg.norm(total, dim=1).detach()
    found = x @ (module.lora_magnitude_vector / lengths * total.T)
    return found if module.base.bias is None else found + module.base.bias


@pytest.mark.parametrize("kind", ["with a bias", "without", "turned"])
def test_gradients_are_those_of_the_paper(kind: str) -> None:
    module = changed(kind)
    x = torch.randn(3, 4, 5, dtype=torch.float64, requires_grad=True)
    learned = [*(p for p in module.parameters() if p.requires_grad), x]
    results: list[list[torch.Tensor]] = []
    for found in (module(x), by_the_paper(module, x)):
        loss = (found.square() * found.sigmoid()).sum()
        results.append([found.detach(), *torch.autograd.grad(loss, learned)])
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_zeros_stay_what_they_are(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "model.layers.0.mlp.up_proj"
    weights = {name: values.copy() for name, values in base_of(shape_of("llama")).items()}
    weights[f"{path}.weight"][3] = 0.0

    def with_a_row_of_zeros(_: ModelShape) -> Tensors:
        return weights

    monkeypatch.setattr(test_adapter_engines, "base_of", with_a_row_of_zeros)
    adapted = ENGINES[engine](shape_of("llama"), LORA)
    assert adapted.weights()[tensor_name(path, MAGNITUDE)][3] == 0.0
    assert np.isfinite(losses(adapted, 3)).all()
    assert adapted.weights()[tensor_name(path, MAGNITUDE)][3] == 0.0
