"""Models that no engine can load: told at once, and not tried again for each request."""

import json
import logging
from pathlib import Path

import pytest

from jupiterd.cluster.serving.engine_choice import AUTO, LLAMA, MLX
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cycle.base.model_files import FAST_TOKENIZER, INDEX
from jupiterd.daemon.serving.engine_pool import EnginePool, PoolOptions
from jupiterd.errors import CorruptWeightsError, JupiterError, WorkFailedError
from tests.support.serving.pools import chat, completion, heard, in_folder, open_pool
from tests.support.serving.slow_models import write_chatty

pytest.importorskip("xllamacpp")
pytestmark = [pytest.mark.net, pytest.mark.timeout(120)]

WEIGHTS = "model.safetensors"
ENGINES = [LLAMA, pytest.param(MLX, marks=[pytest.mark.mlx, pytest.mark.full])]


def cut(folder: Path) -> str:
    whole = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(whole[: len(whole) // 2])
    return f"{WEIGHTS} is cut off"


def without_a_shard(folder: Path) -> str:
    index = {"weight_map": {"a": WEIGHTS, "b": "model-00002-of-00002.safetensors"}}
    (folder / INDEX).write_text(json.dumps(index))
    return "model-00002-of-00002.safetensors is missing"


def without_weights(folder: Path) -> str:
    (folder / WEIGHTS).unlink()
    return f"{WEIGHTS} isn't there"


def without_tokenizer(folder: Path) -> str:
    (folder / FAST_TOKENIZER).unlink()
    return f"{FAST_TOKENIZER} isn't there, nor a tokenizer in another form"


def with_half_a_tokenizer(folder: Path) -> str:
    whole = (folder / FAST_TOKENIZER).read_text()
    (folder / FAST_TOKENIZER).write_text(whole[: len(whole) // 2])
    return f"{FAST_TOKENIZER} can't be read"


@pytest.mark.parametrize(
    "damaged", [cut, without_a_shard, without_weights, without_tokenizer, with_half_a_tokenizer]
)
async def test_damaged_files_are_told_with_their_file_and_no_engine_is_started(
    tmp_path: Path, damaged
) -> None:
    folder = write_chatty(tmp_path / "model")
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    words = damaged(folder)
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: AUTO)) as pool:
        with pytest.raises(CorruptWeightsError, match=f"tiny can't be loaded: {words}"):
            await heard(pool, in_folder(folder), chat("hi"))
        assert engine_logs(tmp_path) == []
        (folder / INDEX).unlink(missing_ok=True)
        for name, content in whole.items():
            (folder / name).write_bytes(content)
        mended = await heard(pool, in_folder(folder), completion("the bread"))
        assert mended.tokens == 16


@pytest.mark.parametrize("engine", ENGINES)
async def test_weights_of_other_shapes_end_the_engine_and_are_told(
    engine: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = in_folder(of_other_shapes(tmp_path / "model"))
    words = "gate_proj.weight of 48 x 32, and its config.json says 96 x 32"
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: engine)) as pool:
        with pytest.raises(CorruptWeightsError, match=words):
            await heard(pool, model, chat("hi"))
        told = record_of(caplog, "engine_not_loaded")
        assert (told["model"], told["engine"]) == ("tiny", engine)
        assert "it ended with status 1: " in told["reason"]
        assert "shape" in told["reason"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_model_that_ends_each_engine_is_told_with_its_log(
    engine: str, tmp_path: Path
) -> None:
    """Its family isn't one whose tensors are known by name."""
    folder = write_chatty(tmp_path / "model")
    rename_a_tensor(folder / WEIGHTS)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization": {"bits": 0}}))
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: engine)) as pool:
        with pytest.raises(WorkFailedError, match=f"no engine can load tiny: {engine}: ") as raised:
            await heard(pool, in_folder(folder), chat("hi"))
        assert "logs/engine-" in raised.value.hint


async def test_a_failed_load_is_kept_in_mind_until_it_is_asked_for_or_the_files_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = of_other_shapes(tmp_path / "model")
    model = in_folder(folder)
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: LLAMA)) as pool:
        assert await starts(pool, model, caplog) == 1
        assert await starts(pool, model, caplog) == 0
        with pytest.raises(CorruptWeightsError):
            await pool.load(model)
        assert sum(row.message == "engine_not_loaded" for row in caplog.records) == 1
        (folder / "config.json").write_text((folder / "config.json").read_text() + "\n")
        assert await starts(pool, model, caplog) == 1


async def starts(pool: EnginePool, model: ServedModel, caplog: pytest.LogCaptureFixture) -> int:
    """Return how many engines are started in vain for a request."""
    caplog.clear()
    with pytest.raises(JupiterError):
        await heard(pool, model, chat("hi"))
    found = sum(row.message == "engine_not_loaded" for row in caplog.records)
    caplog.clear()
    return found


def of_other_shapes(folder: Path) -> Path:
    """Write a model whose config.json belongs to a wider one."""
    write_chatty(folder)
    config = json.loads((folder / "config.json").read_text())
    config["intermediate_size"] *= 2
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def rename_a_tensor(path: Path) -> None:
    """Give a tensor of a file a name that no engine knows."""
    content = path.read_bytes()
    path.write_bytes(content.replace(b"layers.0.mlp.gate_proj", b"layers.0.mlp.gate_frog"))


def engine_logs(root: Path) -> list[str]:
    return [path.name for path in (root / "state").rglob("engine-*.log")]


def record_of(caplog: pytest.LogCaptureFixture, event: str) -> dict[str, str]:
    found = next(row for row in caplog.records if row.message == event)
    assert found.levelno == logging.WARNING
    return vars(found)
