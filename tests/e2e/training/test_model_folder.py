"""A model that is given as a Hugging Face folder: trained from its weights, and loaded again."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer
from tests.support.daemons.cluster import NAMES, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import write_letters
from tests.support.strikes.wholeness import left_over

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

VOCAB = 320
NO_STEP = "1e-12"
"""A learning rate that leaves the weights as they were."""


def write_gpt2(folder: Path, letters: Path) -> "GPT2LMHeadModel":
    """A GPT-2 of two layers with its tokenizer, as Hugging Face keeps one."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(3)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCAB, n_positions=64, n_embd=32, n_layer=2, n_head=2)
    )
    model.save_pretrained(folder)
    texts = [path.read_text() for path in sorted(letters.iterdir())]
    save_tokenizer(train_tokenizer(texts, VOCAB), folder)
    return model


async def test_a_gpt2_folder_is_trained_from_its_weights(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    letters = write_letters(tmp_path)
    given = write_gpt2(tmp_path / "small-gpt2", letters)
    asked = ("--data", str(letters), "--model", str(tmp_path / "small-gpt2"), "--max-steps", "6")
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES[:2]]
        async with running(daemons) as cluster:
            await cluster.meet()
            long = cluster.ctl("train", "start", *asked)
            assert (long.returncode, "has 64 positions" in long.stderr) == (2, True), long.stderr
            done = cluster.ctl(
                *("train", "start", *asked, "--seq-len", "64", "--lr", NO_STEP, "--wait"),
                *("--gradient-accumulation-steps", "2", "--micro-batch", "2", "--timeout", "150"),
                timeout_s=170,
            )
            assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
            assert "Model small-gpt2: d_model=32, layers=2, heads=2" in done.stdout
            assert "Effective batch 2 x 1 x 2 = 4 sequences" in done.stdout
            assert "Micro batches of 2: as asked" in done.stdout
            folder = Path(done.stdout.splitlines()[-1].removeprefix("model: "))
            assert json.loads((folder / "config.json").read_text())["model_type"] == "gpt2"
            made = AutoModelForCausalLM.from_pretrained(folder)
        assert left_over(tmp_path, []) == []
    assert type(made) is type(given)
    for name, values in given.state_dict().items():
        assert torch.allclose(made.state_dict()[name], values, atol=1e-6), name


def write_hrm_text(folder: Path, letters: Path) -> None:
    """An HRM of one layer a stack with its tokenizer: transformers has it, mlx-lm doesn't."""
    import torch
    from transformers import AutoModelForCausalLM, HrmTextConfig

    torch.manual_seed(3)
    config = HrmTextConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        head_dim=16,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    texts = [path.read_text() for path in sorted(letters.iterdir())]
    save_tokenizer(train_tokenizer(texts, VOCAB), folder)


async def test_an_architecture_that_mlx_lacks_trains_on_one_machine_and_in_a_gang_of_two(
    tmp_path: Path,
) -> None:
    from transformers import AutoModelForCausalLM

    letters = write_letters(tmp_path)
    write_hrm_text(tmp_path / "small-hrm", letters)
    asked = (
        *("train", "start", "--data", str(letters), "--model", str(tmp_path / "small-hrm")),
        *("--seq-len", "64", "--max-steps", "4", "--gradient-accumulation-steps", "2"),
    )
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES[:2]]
        async with running(daemons) as cluster:
            await cluster.meet()
            on_mlx = cluster.ctl(*asked, "--engine", "mlx")
            assert on_mlx.returncode == 2
            assert "MLX can't train this hrm_text model" in on_mlx.stderr
            for nodes, batch in (("1", "2 x 1 x 1 = 2"), ("2", "2 x 1 x 2 = 4")):
                done = cluster.ctl(
                    *(*asked, "--nodes", nodes, "--wait", "--timeout", "100"), timeout_s=120
                )
                assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
                assert f"Effective batch {batch} sequences" in done.stdout
                folder = Path(done.stdout.splitlines()[-1].removeprefix("model: "))
                made = AutoModelForCausalLM.from_pretrained(folder)
                assert made.config.model_type == "hrm_text"
        assert left_over(tmp_path, []) == []
