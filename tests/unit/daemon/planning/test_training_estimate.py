"""What is said of a training before it is recorded, and what is refused because it can't fit."""

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed
from jupiterd.cluster.facts.facts import RoleAssigned, TrainingStarted
from jupiterd.cluster.ledger.cycle_state import STOPPED
from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.cycle.runs.run_settings import RunSettings
from jupiterd.cycle.training.plan import ModelShape, parse_model
from jupiterd.daemon.commands.term_adapters import plan_cycle, start_cycle, start_training
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.machine_devices import device_of, smallest_device
from jupiterd.errors import JupiterError, TooLargeForDeviceError, UsageError
from jupiterd.ids import CycleId, NodeId
from jupiterd.protocol.commands.cycle_commands import PlanCycle, StartCycle
from jupiterd.protocol.commands.train_commands import StartTraining
from tests.support.cluster.building import checkpoint, commanded, data_asked, opened, training
from tests.support.daemon.term_parts import FakeMachines
from tests.support.daemon.two_nodes import found, serving
from tests.unit.cycle.training.test_given_quantized import LLAMA, OF_MLX
from tests.unit.daemon.commands.test_train_commands import MADE, leads, of_latest

GB = 10**9
ASKED = {"data": "letters", "settings": {"seq_len": 64, "max_steps": 10}}
GPT2 = {
    "model_type": "gpt2", "vocab_size": 320, "n_positions": 128, "n_embd": 32, "n_layer": 2,
    "n_head": 2, "layer_norm_epsilon": 1e-5,
}  # fmt: skip


def gpu(name: str = "NVIDIA H100 80GB HBM3", memory_gb: int = 80) -> Gpu:
    return Gpu(name, "GPU-1", memory_gb * GB, "cuda")


def recorded(leading: TermServices) -> tuple[TrainingStarted, RunSettings, ModelShape]:
    _, run = of_latest(leading)
    assert run is not None
    return run, RunSettings.parse(dict(run.settings)), parse_model(run.model_yaml)


async def test_the_reply_says_what_is_to_be_expected(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE, ram_bytes=16 * GB) as leading:
        done = await start_training(leading, StartTraining.read({**ASKED, "model": "1m"}))
        said, expected = done["sheet"], done["expected"]
        assert said[0].startswith("Model 1m: d_model=128, layers=3, heads=2, seq_len=64")
        assert said[1].startswith("Precision fp32 | Autocast=OFF | GradScaler=OFF | AdamW")
        assert "of 16.0 GB" in next(line for line in said if line.startswith("Memory per device"))
        assert said[-2].startswith("Effective batch 16 x 2 x 1 = 32 sequences")
        assert said[-1].startswith("Expected speed isn't known yet: not all of these devices were")
        assert (expected["steps"], expected["tokens"], expected["tokens_per_s"]) == (
            10, 10 * 32 * 64, None,
        )  # fmt: skip
        assert expected["memory_bytes_per_device"] < expected["device_memory_bytes"] == 16 * GB
        _, settings, _ = recorded(leading)
        assert (settings.micro_batch, settings.weights, settings.optimizer) == (0, "auto", "auto")


async def test_steps_that_only_the_data_tells_are_not_made_up(tmp_path: Path) -> None:
    async with leads(tmp_path) as leading:
        source = {"source": {"kind": "folder", "path": "/poems"}, "name": "poems", "node": "n"}
        done = await start_training(leading, StartTraining.read({**source, "model": "1m"}))
        assert done["sheet"][-2].endswith("as many steps as the data takes")
        assert done["expected"]["steps"] is None


async def test_a_plan_that_is_too_large_is_recorded_as_it_fits(tmp_path: Path) -> None:
    async with leads(
        tmp_path, data_asked(), MADE, gpus=(gpu(memory_gb=16),), devices=("cuda:0",)
    ) as leading:
        done = await start_training(leading, StartTraining.read({**ASKED, "model": "1b"}))
        assert "to fit the smallest device: " in done["sheet"][-1]
        _, settings, _ = recorded(leading)
        assert settings.optimizer == "muon"
        assert settings.batch_sequences == 32, "the effective batch is as it was asked for"
        assert done["expected"]["memory_bytes_per_device"] <= 16 * GB


async def test_a_batch_that_is_too_large_for_the_memory_is_cut_up(tmp_path: Path) -> None:
    settings = {"seq_len": 64, "batch_size": 480, "gradient_checkpointing": "off"}
    async with leads(tmp_path, data_asked(), MADE, ram_bytes=GB * 3 // 4) as leading:
        done = await start_training(
            leading, StartTraining.read({**ASKED, "model": "1m", "settings": settings})
        )
        _, kept, _ = recorded(leading)
        assert 0 < kept.micro_batch < 480
        assert (kept.batch_sequences, done["batch_sequences"]) == (480 * 32, 480 * 32)


async def test_what_fits_nowhere_is_refused_with_the_nearest_size_that_does(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE, ram_bytes=2 * GB) as leading:
        before = leading.term.replica.ledger.head()
        with pytest.raises(TooLargeForDeviceError) as caught:
            await start_training(leading, StartTraining.read({**ASKED, "model": "1b"}))
        assert "1b needs" in caught.value.message
        assert "the smallest device has 2.0 GB" in caught.value.message
        assert "of which 0.2 GB are kept in reserve" in caught.value.message
        assert caught.value.hint.startswith("the nearest size that fits is 25m; or train on ")
        assert leading.term.replica.ledger.head() == before


async def test_a_model_that_mlx_can_t_load_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    async with leads(tmp_path, data_asked(), MADE, engines=("mlx",)) as leading:
        gptj = json.dumps({**GPT2, "model_type": "gptj"})
        with pytest.raises(UsageError, match=r"MLX can't .* gptj") as caught:
            await start_training(
                leading,
                StartTraining.read({**ASKED, "model": "mine", "config": gptj, "engine": "mlx"}),
            )
        assert "--engine torch" in caught.value.hint
        await start_training(leading, StartTraining.read({**ASKED, "model": "1m", "engine": "mlx"}))


async def test_a_configuration_is_a_model_too(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        told = {"model": "my gpt2", "config": json.dumps(GPT2)}
        done = await start_training(leading, StartTraining.read({**ASKED, **told}))
        run, settings, shape = recorded(leading)
        assert (run.model, shape.size, shape.architecture) == ("my gpt2", "my-gpt2", "gpt2")
        assert (shape.layers, shape.hidden, shape.config["layer_norm_epsilon"]) == (2, 32, 1e-5)
        assert settings.start_from == ""
        assert done["sheet"][0].startswith("Model my-gpt2: d_model=32, layers=2")


async def test_weights_to_begin_with_are_recorded(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        told = {"model": "mine", "config": json.dumps(GPT2), "weights": "a" * 64}
        done = await start_training(leading, StartTraining.read({**ASKED, **told}))
        assert recorded(leading)[1].start_from == "a" * 64
        told = done["sheet"][-3:-1]
        assert told[0] == "Starts from the weights of mine"
        assert told[1].startswith("Batch of 4 sequences: follows from the text")


@pytest.mark.parametrize(
    ("more", "settings", "words"),
    [
        ({}, {}, "only an adapter can be trained beside them"),
        ({}, {"lora": "quantize=8bit"}, "--quantize 8bit: the weights of mine have 4 bits"),
        ({"engine": "torch"}, {"lora": "rank=4"}, "only MLX trains beside those"),
        ({"engine": "mlx"}, {"lora": "rank=4"}, "none of 1 trainers has mlx"),
        ({}, {"lora": "rank=4"}, "none of 1 trainers has mlx"),
    ],
)
async def test_beside_weights_that_come_quantized_mlx_trains_an_adapter(
    tmp_path: Path, more: dict[str, str], settings: dict[str, str], words: str
) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        config = json.dumps({**LLAMA, "quantization": OF_MLX})
        told = {"model": "mine", "config": config, "weights": "a" * 64, **more}
        told["settings"] = {**ASKED["settings"], **settings}
        asked = StartTraining.read({**ASKED, **told})
        with pytest.raises(JupiterError, match=words):
            await start_training(leading, asked)


async def test_weights_that_are_given_are_tuned_by_a_recipe_of_their_own(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        told = {"model": "mine", "config": json.dumps(GPT2), "weights": "a" * 64}
        done = await start_training(leading, StartTraining.read({**ASKED, **told}))
        assert recorded(leading)[1].recipe == "tuning"
        rate = done["expected"]["learning_rate"]
        assert 2e-5 <= rate < 1e-4
        assert done["sheet"][-1].startswith(f"Learning rate {rate:g}: tunes weights of")


async def test_a_rate_that_is_high_for_given_weights_is_called_so(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        told = {"model": "mine", "config": json.dumps(GPT2), "weights": "a" * 64}
        settings = {**ASKED["settings"], "learning_rate": 3e-3}
        done = await start_training(
            leading, StartTraining.read({**ASKED, **told, "settings": settings})
        )
        assert done["expected"]["learning_rate"] == 3e-3
        assert "0.003 is high for weights that are given" in done["sheet"][-1]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("{", "isn't one JSON object"),
        ("[1]", "isn't one JSON object"),
        ("[" * 50_000, "isn't one JSON object"),
        (json.dumps({"model_type": "gpt2"}), "says no vocab_size"),
        (json.dumps(GPT2 | {"vocab_size": 2_000_000}), "a vocabulary of 2,000,000"),
        (json.dumps(GPT2 | {"vocab_size": 20}), "vocab_size: input should be greater"),
        (json.dumps(GPT2 | {"n_head": 3, "num_key_value_heads": 2}), "a multiple of kv_heads"),
        (json.dumps(GPT2 | {"model_type": "../x"}), "no causal language model is known"),
        (json.dumps(GPT2 | {"n_positions": 32}), "has 32 positions"),
        (json.dumps(GPT2 | {"more": "x" * 70_000}), "larger than 64 KiB"),
    ],
)
async def test_a_configuration_that_can_t_be_is_refused_in_a_line(
    tmp_path: Path, config: str, says: str
) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        with pytest.raises(UsageError) as caught:
            await start_training(
                leading, StartTraining.read({**ASKED, "model": "mine", "config": config})
            )
        assert says in caught.value.message
        assert "\n" not in caught.value.message


async def test_data_that_the_weights_have_no_words_for_is_refused(tmp_path: Path) -> None:
    more = replace(MADE, counts={"tokens": 10_000.0, "vocab_size": 900.0})
    async with leads(tmp_path, data_asked(), more) as leading:
        told = {"model": "mine", "config": json.dumps(GPT2), "weights": "a" * 64}
        with pytest.raises(UsageError, match="has 900 kinds of tokens"):
            await start_training(leading, StartTraining.read({**ASKED, **told}))


async def test_the_speed_of_an_earlier_run_of_the_model_is_expected_again(tmp_path: Path) -> None:
    earlier = CycleId("e" * 16)
    facts = (
        replace(training(), cycle=earlier),
        replace(opened(3), cycle=earlier, engine="torch/gloo"),
        replace(checkpoint("k1", tokens=8_000), cycle=earlier, attempt=3),
        AttemptClosed(earlier, 3, "a rank died", 40.0),
        replace(opened(4), cycle=earlier, engine="torch/gloo", from_checkpoint="k1"),
        replace(checkpoint("k2", "k1", tokens=9_000), cycle=earlier, attempt=4),
        AttemptClosed(earlier, 4, "it ended at once", 2.0),
        replace(commanded(STOPPED, 1), cycle=earlier),
    )
    async with leads(tmp_path, data_asked(), MADE, *facts) as leading:
        done = await start_training(leading, StartTraining.read({**ASKED, "model": "1m"}))
        assert done["expected"]["tokens_per_s"] == 8_000 / 40 / 2, "of one rank of two"
        assert done["sheet"][-1].startswith("Expected ")


@pytest.mark.parametrize(
    ("name", "has_bf16"),
    [
        ("NVIDIA H200", True),
        ("NVIDIA A100-SXM4-80GB", True),
        ("NVIDIA L4", True),
        ("NVIDIA GeForce RTX 4090", True),
        ("NVIDIA RTX 6000 Ada Generation", True),
        ("Tesla T4", False),
        ("Tesla V100-SXM2-16GB", False),
        ("NVIDIA GeForce RTX 2080 Ti", False),
        ("NVIDIA GeForce GTX 1080", False),
    ],
)
def test_what_a_gpu_can_do_is_known_by_its_name(name: str, has_bf16: bool) -> None:
    machine = Hardware("Linux", "x86_64", "cpu", 8, 64 * GB, (gpu(name, 24),), ("torch", "mlx"))
    device = device_of("torch", machine)
    assert (device.kind, device.memory_bytes, device.has_bf16) == ("cuda", 24 * GB, has_bf16)
    assert device_of("mlx", machine).kind == "cpu"


def test_a_mac_s_gpu_has_what_macos_lends_it_whatever_an_older_member_tells() -> None:
    lent = Gpu("Apple M4", "gpu-1", 16 * GB * 2 // 3, "metal")
    for told in (lent, replace(lent, memory_bytes=16 * GB)):
        machine = Hardware("Darwin", "arm64", "Apple M4", 10, 16 * GB, (told,), ("mlx",))
        device = device_of("mlx", machine)
        assert (device.memory_bytes, device.ram_bytes) == (lent.memory_bytes, 16 * GB)


def test_ranks_on_one_machine_share_its_memory() -> None:
    one = Hardware("Linux", "x86_64", "cpu", 8, 16 * GB, (), ("torch",), host="desk")
    machines = {"a": one, "b": one, "c": replace(one, host="other"), "d": replace(one, host="")}

    known = FakeMachines({NodeId(name): machine for name, machine in machines.items()})

    def smallest(*nodes: str) -> int:
        gang = EngineChoice("torch", cast("tuple[NodeId, ...]", nodes), "")
        return smallest_device(known, [gang]).memory_bytes

    assert smallest("a", "b", "c") == 8 * GB
    assert smallest("a", "c", "d") == 16 * GB
    assert smallest("a", "a", "a", "b") == 4 * GB, "each rank takes its share"


async def test_a_cycle_is_planned_for_the_memory_as_well(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        one.hardware = one.local_view.hardware = replace(
            one.hardware, engines=("torch",), gpus=(gpu(memory_gb=16),), devices=("cuda:0",)
        )
        await found(one, facts=(RoleAssigned(one.identity.node_id, "hybrid", "alone", 1),))
        leading = one._begin_term(1)
        one.leadership.leading = leading
        text = (Path(__file__).parents[4] / "config/domains/python.yaml").read_text()
        told = {"domain_yaml": text, "domain_name": "python"}
        planned = await plan_cycle(leading, PlanCycle.read({**told, "size": "1b"}))
        assert not one.replica.state.cycles  # nothing is started by that
        done = await start_cycle(leading, StartCycle.read({**told, "size": "1b"}))
        assert planned["sheet"] == done["sheet"]
        started = leading.term.cycle(CycleId(done["cycle"])).started
        assert started is not None
        shape = parse_model(started.model_yaml)
        assert shape.recipe.options.optimizer == "muon"
        assert any("to fit the smallest device" in line for line in done["sheet"])
        assert done["expected"]["memory_bytes_per_device"] <= 16 * GB
