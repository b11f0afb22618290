"""A model that is named by its id on the hub: fetched with a cut in the midst, and trained."""

import subprocess
from pathlib import Path

import pytest

from jupiterd.formats import size
from tests.support.daemons.cluster import BIN, NAMES, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import write_letters
from tests.support.sources.model_hub import HubFolder, ModelHub, files_of, serving_models
from tests.support.strikes.wholeness import left_over

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(240),
]

NAME = "team/tiny-llama"
VOCAB = 320
WRITTEN_AT_A_TIME = 10 << 20
"""The library writes no smaller pieces of a file."""

TO_THE_HALF = 15 << 20
START_S = 60.0


def write_llama(folder: Path, letters: Path) -> None:
    """A Llama of two layers and 27 MB with its tokenizer, as its maker would keep it."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer

    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=512,
        intermediate_size=1536,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        tie_word_embeddings=True,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    texts = [path.read_text() for path in sorted(letters.iterdir())]
    save_tokenizer(train_tokenizer(texts, VOCAB), folder)


def kill_at_the_half(hub: ModelHub, daemon: Daemon, *asked: str) -> None:
    """Start a command, and end it without a word while the weights are on their way."""
    hub.wanted, hub.bytes_per_s = TO_THE_HALF, 2 * TO_THE_HALF
    command = [str(BIN / "jupiterctl"), "--state-dir", str(daemon.state_dir), *asked]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as begun:
        is_at_half = hub.is_reached.wait(START_S)
        begun.kill()
        assert is_at_half, begun.communicate()[0]
    hub.bytes_per_s = 0


async def test_a_model_of_the_hub_is_fetched_in_two_goes_and_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoModelForCausalLM

    letters = write_letters(tmp_path)
    write_llama(tmp_path / "theirs", letters)
    asked = (
        *("train", "start", "--data", str(letters), "--model", NAME, "--seq-len", "64"),
        *("--max-steps", "2", "--gradient-accumulation-steps", "2"),
    )
    with serving_models() as hub, own_network() as prefix:
        hub.models[NAME] = HubFolder(files_of(tmp_path / "theirs"))
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
        monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
        async with running([Daemon(tmp_path, NAMES[0], prefix)]) as cluster:
            await cluster.meet()
            dry = cluster.ctl(*asked, "--dry-run")
            assert dry.returncode == 0, cluster.failure_text(dry.stdout + dry.stderr)
            weights = size((tmp_path / "theirs" / "model.safetensors").stat().st_size)
            assert f"would fetch {weights} of {NAME}" in dry.stdout
            assert hub.sent == 0
            kill_at_the_half(hub, cluster[0], *asked)
            hub.asked.clear()
            done = cluster.ctl(*asked, "--wait", "--timeout", "150", timeout_s=170)
            assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
            (fetch,) = [line for line in hub.asked if line.startswith("GET /large/")]
            assert fetch.endswith(f" {WRITTEN_AT_A_TIME}-"), "it goes on where it was"
            events = cluster.ctl("events").stdout
            assert f"{NAME} is here, fetched from the hub: " in events
            folder = Path(done.stdout.splitlines()[-1].removeprefix("model: "))
            made = AutoModelForCausalLM.from_pretrained(folder)
            assert made.config.model_type == "llama"
        assert left_over(tmp_path, []) == []
