"""An adapter beside quantized weights: the daemon is started anew in the midst, a gang has the
same bits on each rank, and the sum of both that is exported has the whole weights of the base."""

import asyncio
import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from jupiterd.adapter_folder import ADAPTER_CONFIG, ADAPTER_FILE
from jupiterd.cycle.training.adapters.adapter import FACTORS, module_of, tensor_name
from tests.e2e.training.test_lone_rank import strike, told_every
from tests.support.daemons.adapter_runs import ADAPTER, write_base
from tests.support.daemons.cluster import Cluster, Daemon, Document, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import until_trained, write_letters
from tests.support.strikes.wholeness import left_over

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(300),
]

STEPS, AHEAD, WAIT_S = 100, 20, 120.0
ON_TORCH = pytest.param(
    "torch",
    marks=pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="needs the extra quantized"),
)
ENGINES = [pytest.param("mlx", marks=pytest.mark.mlx), ON_TORCH]
SCALE = 2.0
"""alpha=16 beside rank=8."""


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_adapter_beside_quantized_weights_goes_on_and_is_merged_with_the_whole_ones(
    tmp_path: Path, engine: str
) -> None:
    letters = write_letters(tmp_path)
    base = write_base(tmp_path, letters)
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "alone", prefix)]) as cluster:
            await cluster.meet()
            run = begin(cluster, letters, base, "--engine", engine)
            before = await started_anew(cluster)
            shown = await until_over(cluster)
            assert shown["resumed_from_step"] >= before
            assert shown["best_bits_per_byte"] < shown["bits_per_byte_before"]
            alone, whole = tmp_path / "exported", tmp_path / "merged"
            done(cluster, "model", "export", run, "--to", str(alone))
            done(cluster, "model", "export", run, "--merge", "--to", str(whole))
        assert left_over(tmp_path, []) == []
    assert json.loads((alone / ADAPTER_CONFIG).read_text())["r"] == 8
    assert not (whole / ADAPTER_CONFIG).exists()
    assert "quantization" not in json.loads((whole / "config.json").read_text())
    assert_merged(weights_of(whole), weights_of(base), load_file(alone / ADAPTER_FILE))


@pytest.mark.parametrize("engine", ENGINES)
async def test_kill_9_of_the_only_rank_goes_on_beside_the_same_bits(
    tmp_path: Path, engine: str
) -> None:
    letters = write_letters(tmp_path)
    base = write_base(tmp_path, letters)
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "alone", prefix)]) as cluster:
            await cluster.meet()
            begin(cluster, letters, base, "--engine", engine)
            before, after = await strike(cluster, cluster.daemons[0], AHEAD)
            assert after["resumed_from_step"] >= before["step"] - max(1.0, told_every(before))
            shown = await until_over(cluster)
            assert shown["best_bits_per_byte"] < shown["bits_per_byte_before"]
            done(cluster, "data", "audit")
        assert left_over(tmp_path, []) == []


@pytest.mark.parametrize("engine", [ON_TORCH])
async def test_a_gang_trains_beside_the_same_bits_on_every_rank(
    tmp_path: Path, engine: str
) -> None:
    letters = write_letters(tmp_path)
    base = write_base(tmp_path, letters)
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in ("one", "two")]
        async with running(daemons) as cluster:
            await cluster.meet()
            begin(cluster, letters, base, "--engine", engine, "--islands", "off", steps=60)
            await cluster.until(
                lambda run: len(run["gang"]) == 2 and run["step"] > 0,
                "two ranks train",
                WAIT_S,
                noun="train",
            )
            shown = await until_over(cluster)
            assert shown["best_bits_per_byte"] < shown["bits_per_byte_before"]
        assert left_over(tmp_path, []) == []


@pytest.mark.mlx
async def test_a_folder_that_mlx_lm_has_quantized_is_trained_beside_as_it_is(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path)
    base = quantized(write_base(tmp_path, letters), tmp_path / "quantized")
    asked = ("train", "start", "--data", str(letters), "--model", str(base), "--seq-len", "64")
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "alone", prefix)]) as cluster:
            await cluster.meet()
            for more, says in REFUSED.items():
                refused = cluster.ctl(*asked, *more, "--dry-run")
                assert refused.returncode == 2, refused.stdout
                assert says in refused.stderr
            steps = ("--max-steps", "60", "--batch-size", "4", "--seed", "7", "-o", "json")
            steps = (*steps, "--gradient-accumulation-steps", "1")
            run = json.loads(done(cluster, *asked, *ADAPTER, *steps))["train"]
            shown = await until_over(cluster)
            assert shown["best_bits_per_byte"] < shown["bits_per_byte_before"]
            alone = tmp_path / "exported"
            done(cluster, "model", "export", run, "--format", "mlx", "--to", str(alone))
        assert left_over(tmp_path, []) == []
    assert answers(base, alone)


REFUSED = {
    (): "only an adapter can be trained beside them",
    (*ADAPTER, "--engine", "torch"): "only MLX trains beside those",
    (*ADAPTER, "--quantize", "8bit"): "have 4 bits already",
}
"""What is said of such a folder by the options it is asked for with."""


def quantized(whole: Path, folder: Path) -> Path:
    from mlx_lm.convert import convert

    convert(str(whole), str(folder), quantize=True, q_bits=4)
    return folder


def answers(base: Path, adapter: Path) -> bool:
    """Say whether mlx-lm itself loads both, and makes something of the adapter."""
    import mlx.core as mx
    from mlx_lm import load

    both, alone = (load(str(base), adapter_path=each)[0] for each in (str(adapter), None))
    tokens = mx.array([[5, 6, 7, 8]])
    return not mx.allclose(both(tokens), alone(tokens))


def begin(cluster: Cluster, letters: Path, base: Path, *more: str, steps: int = STEPS) -> str:
    asked = ("train", "start", "--data", str(letters), "--model", str(base), *ADAPTER)
    asked = (*asked, *more, "--seq-len", "64", "--quantize", "4bit", "--seed", "7")
    shown = done(
        cluster,
        *(*asked, "--batch-size", "4", "--gradient-accumulation-steps", "1"),
        *("--max-steps", str(steps), "-o", "json"),
    )
    return json.loads(shown)["train"]


async def started_anew(cluster: Cluster) -> int:
    """End the daemon in the midst, and start it again; return the step that it had come to."""
    (daemon,) = cluster.daemons
    shown = await until_trained(cluster, daemon, AHEAD, WAIT_S)
    assert shown["state"] != "finished", "it must still train"
    await asyncio.to_thread(daemon.stop)
    daemon.start()
    await cluster.meet()
    return int(shown["step"])


async def until_over(cluster: Cluster) -> Document:
    return await cluster.until(
        lambda run: run["state"] == "finished", "the run is over", WAIT_S, noun="train"
    )


def done(cluster: Cluster, *words: str) -> str:
    found = cluster.ctl(*words)
    assert found.returncode == 0, cluster.failure_text(found.stdout + found.stderr)
    return found.stdout


def weights_of(folder: Path) -> Mapping[str, Any]:
    return {
        name: values
        for file in folder.glob("*.safetensors")
        for name, values in load_file(file).items()
    }


def assert_merged(whole: Mapping[str, Any], base: Mapping[str, Any], adapter: Any) -> None:
    """Each matrix is that of the base, in full, and what its adapter adds to it."""
    first, second = FACTORS
    added = {
        f"{module}.weight": SCALE
        * (adapter[tensor_name(module, second)] @ adapter[tensor_name(module, first)])
        for module in {module_of(name)[0] for name in adapter}
    }
    assert whole.keys() == base.keys()
    assert len(added) == 7 * 3
    for name, values in base.items():
        assert np.allclose(whole[name], values + added.get(name, 0.0), atol=1e-6), name
        assert name not in added or np.abs(added[name]).max() > 1e-3, name
