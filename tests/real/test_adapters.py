"""Adapters beside the package peft's and mlx-lm's own: SmolLM2, the same rows, twenty steps."""

import importlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from jupiterd.cycle.training.adapters.adapter import (
    FACTORS,
    module_of,
    parse_adapter,
    tensor_name,
)
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, shape_of_config
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.openblas import openblas
from tests.real.quantized_losses import before_and_after, plan_beside
from tests.support.workers.tiny_engine import tiny_plan
from tests.support.workers.tiny_run import tiny_shape

torch: Any = pytest.importorskip("torch")

from jupiterd.workers.train.checkpoints.checkpoint import load_base  # noqa: E402
from jupiterd.workers.train.torch.process_group import ProcessGroup  # noqa: E402
from jupiterd.workers.train.torch.torch_engine import TorchEngine  # noqa: E402
from jupiterd.workers.training_engine import (  # noqa: E402
    BETAS,
    EPSILON,
    MicroBatch,
    TrainingEngine,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

STEPS, RATE, RANK, ALPHA = 20, 2e-4, 8, 16
SEQUENCES, SEQ_LEN = 1, 32
TOLERANCE = 1e-4
TEXTS = 3
SAME = 2e-5
"""Nats a token: sums of the same numbers are rounded otherwise."""
FALLEN = 0.1
"""Nats a token: by as much at the least an adapter that trains beside them learns in two passes."""
CHILD_S = 400
ROOT = Path(__file__).resolve().parents[2]

Tensors = Mapping[str, NDArray[np.float32]]


@pytest.fixture(scope="module")
def rows() -> NDArray[np.int64]:
    chance = np.random.default_rng(11)
    return chance.integers(10, 40_000, (STEPS, SEQUENCES, SEQ_LEN + 1))


def shape_of_folder(folder: Path) -> ModelShape:
    config = json.loads((folder / "config.json").read_text())
    shape = shape_of_config("SmolLM2", config, tiny_shape().recipe)
    return shape.model_copy(update={"seq_len": SEQ_LEN})


def plan(shape: ModelShape) -> TrainPlan:
    adapter = parse_adapter(f"rank={RANK},alpha={ALPHA},targets=attention")
    return tiny_plan(shape, adapter=adapter, weight_decay=0.0, batch_sequences=SEQUENCES)


def our_losses(engine: TrainingEngine, rows: NDArray[np.int64]) -> list[float]:
    batches = [MicroBatch(row[:, :-1], row[:, 1:]) for row in rows]
    return [engine.step([batch], RATE)[0] for batch in batches]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # peft 0.21 asks transformers by an old name
def test_torch_trains_as_a_script_with_peft_does(model: Path, rows: NDArray[np.int64]) -> None:
    peft: Any = pytest.importorskip("peft", reason="pip install peft==0.21.2 accelerate")
    from transformers import AutoModelForCausalLM

    shape = shape_of_folder(model)
    engine = TorchEngine(shape, plan(shape), 0, ProcessGroup(0, 1), "cpu")
    load_base(model, engine)
    engine.begin(has_same_weights=True)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj"]
    config = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=targets, lora_dropout=0.0)
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    theirs: Any = peft.get_peft_model(base, config)
    begin(theirs, engine.weights())
    wanted = peft_losses(theirs, rows)
    assert our_losses(engine, rows) == pytest.approx(wanted, abs=TOLERANCE)
    assert wanted[-1] != pytest.approx(wanted[0], abs=TOLERANCE)


@torch.no_grad()
def begin(theirs: Any, tensors: Tensors) -> None:
    """Give peft's model the same first numbers."""
    named = dict(theirs.named_parameters())
    for name, values in tensors.items():
        named[name.replace(".weight", ".default.weight")].copy_(torch.from_numpy(values))


def peft_losses(theirs: Any, rows: NDArray[np.int64]) -> list[float]:
    trained = [p for p in theirs.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0)
    found: list[float] = []
    for row in rows:
        ids = torch.from_numpy(row)
        logits = theirs(ids[:, :-1]).logits.flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found


@pytest.mark.mlx
def test_mlx_trains_as_mlx_lm_does(model: Path, rows: NDArray[np.int64]) -> None:
    mx: Any = pytest.importorskip("mlx.core")
    from mlx import nn
    from mlx_lm.tuner.utils import linear_to_lora_layers

    from jupiterd.workers.mlx_folder import loaded_model
    from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
    from jupiterd.workers.train.mlx.ring import Ring

    shape = shape_of_folder(model)
    engine = MlxTrainingEngine(shape, plan(shape), 0, Ring(0, 1))
    load_base(model, engine)
    engine.begin(has_same_weights=True)
    theirs: Any = loaded_model(model)
    theirs.set_dtype(mx.float32)
    theirs.freeze()
    keys = {f"self_attn.{letter}_proj" for letter in "qkvo"}
    how = {"rank": RANK, "scale": ALPHA / RANK, "dropout": 0.0, "keys": keys}
    linear_to_lora_layers(theirs, len(theirs.layers), how)
    theirs.load_weights(list(as_mlx_has_them(engine.weights(), mx).items()), strict=False)
    wanted = mlx_losses(theirs, rows, mx, nn)
    assert our_losses(engine, rows) == pytest.approx(wanted, abs=TOLERANCE)


def as_mlx_has_them(tensors: Tensors, mx: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in dict.fromkeys(module_of(name)[0] for name in tensors):
        for factor in FACTORS:
            found[f"{path}.{factor.lower()}"] = mx.array(tensors[tensor_name(path, factor)].T)
    return found


def mlx_losses(model: Any, rows: NDArray[np.int64], mx: Any, nn: Any) -> list[float]:
    from mlx import optimizers

    def loss_of(called: Any, ids: Any) -> Any:
        return nn.losses.cross_entropy(called(ids[:, :-1]), ids[:, 1:], reduction="mean")

    how: dict[str, Any] = {
        "betas": list(BETAS),
        "eps": EPSILON,
        "weight_decay": 0.0,
        "bias_correction": True,
    }
    optimizer = optimizers.AdamW(RATE, **how)
    gradient_of, found = nn.value_and_grad(model, loss_of), list[float]()
    for row in rows:
        loss, gradients = gradient_of(model, mx.array(row))
        clipped, _ = optimizers.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, clipped)
        mx.eval(model.parameters(), optimizer.state)
        found.append(loss.item())
    return found


@pytest.fixture(scope="module")
def text_rows(model: Path) -> NDArray[np.int64]:
    """Return tokens of real text: what is rounded away shows far more on such as nobody writes."""
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    ids = tokenizer((ROOT / "docs" / "gate.md").read_text())["input_ids"]
    return np.array(ids[: TEXTS * (SEQ_LEN + 1)]).reshape(TEXTS, SEQUENCES, SEQ_LEN + 1)


@pytest.mark.mlx
def test_a_folder_that_mlx_lm_has_quantized_is_trained_beside(
    model: Path, text_rows: NDArray[np.int64], tmp_path: Path
) -> None:
    pytest.importorskip("mlx.core")
    if sys.platform == "linux" and openblas() is None:
        pytest.skip("MLX is too slow for this without OpenBLAS: apt-get install libopenblas0")
    np.save(tmp_path / "rows.npy", text_rows)
    given = (str(model), str(tmp_path / "rows.npy"), str(tmp_path / "quantized"))
    done = subprocess.run(
        [sys.executable, "-m", "tests.real.quantized_on_mlx", *given],
        env=worker_environment("train", {"engine": "mlx"}) | {"PYTHONPATH": str(ROOT)},
        cwd=ROOT, capture_output=True, text=True, timeout=CHILD_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["ours"] == pytest.approx(found["theirs"], abs=SAME), "mlx-lm's own model of it"
    assert np.mean(found["after"]) < np.mean(found["ours"]) - FALLEN
    assert_distance("8bit", found["ours"], found["whole"])


@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="needs the extra quantized")
@pytest.mark.parametrize("kept", ["8bit", "4bit"])
def test_torch_trains_beside_what_bitsandbytes_quantized(
    model: Path, text_rows: NDArray[np.int64], kept: str
) -> None:
    from transformers import AutoModelForCausalLM

    shape = shape_of_folder(model)
    engine = TorchEngine(shape, plan_beside(shape, kept), 0, ProcessGroup(0, 1), "cpu")
    load_base(model, engine)
    engine.begin(has_same_weights=True)
    ours, after = before_and_after(engine, text_rows)
    theirs: Any = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    whole = torch_losses(theirs, text_rows)
    quantize(theirs, kept)
    assert ours == pytest.approx(torch_losses(theirs, text_rows), abs=SAME), "bitsandbytes' own"
    assert np.mean(after) < np.mean(ours) - FALLEN
    assert_distance(kept, ours, whole)


@torch.no_grad()
def quantize(theirs: Any, kept: str) -> None:
    """Let a model have the numbers that bitsandbytes' own functions make of its matrices."""
    functional: Any = importlib.import_module("bitsandbytes.functional")
    for module in theirs.model.layers.modules():
        if isinstance(module, torch.nn.Linear) and kept == "4bit":
            how = {"blocksize": 64, "quant_type": "nf4", "compress_statistics": False}
            packed, state = functional.quantize_4bit(module.weight.data, **how)
            module.weight.copy_(functional.dequantize_4bit(packed, state))
        elif isinstance(module, torch.nn.Linear):
            packed, scales, _ = functional.int8_vectorwise_quant(module.weight.data)
            module.weight.copy_(functional.int8_vectorwise_dequant(packed, scales))


@torch.no_grad()
def torch_losses(theirs: Any, rows: NDArray[np.int64]) -> list[float]:
    found: list[float] = []
    for row in rows:
        ids = torch.from_numpy(row)
        logits = theirs(ids[:, :-1]).logits.flatten(0, 1)
        found.append(torch.nn.functional.cross_entropy(logits, ids[:, 1:].flatten()).item())
    return found


def assert_distance(kept: str, ours: Sequence[float], whole: Sequence[float]) -> None:
    """See that the weights were rounded, and print how much that is in nats a token.

    It is what the package's own weights are off by, so no bound is asked of it.
    """
    off = abs(float(np.mean(ours)) - float(np.mean(whole)))
    print(f"{kept}: {off:.4f} nats a token off the whole weights")
    assert off > SAME
