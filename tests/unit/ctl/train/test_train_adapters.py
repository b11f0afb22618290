"""Adapters that a training run is asked for: new ones, those of others, and quantized bases."""

import pytest

from tests.unit.ctl.sources.test_adapter_source import adapter_in, base_in
from tests.unit.ctl.train.test_train import begin, daemon

__all__ = ["daemon"]

pytestmark = pytest.mark.usefixtures("warm_looks")


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (("--lora",), "rank=16"),
        (("--lora", "--seed", "7"), "rank=16"),
        (("--lora", ""), "rank=16"),
        (("--lora", "off"), ""),
        (("--lora", "rank=8,layers=2"), "rank=8,layers=2"),
        (("--lora", "--quantize", "4bit"), "rank=16,quantize=4bit"),
        (("--lora", "rank=8", "--quantize", "none"), "rank=8,quantize=none"),
    ],
)
def test_an_adapter_is_asked_for_with_or_without_words(daemon, ctl, options, asked):
    assert begin(ctl, *options).exit_code == 0
    assert daemon.executed[0][1]["settings"]["lora"] == asked


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_an_adapter_of_others_is_begun_with_in_its_own_words(daemon, ctl, tmp_path, options):
    base, adapter = base_in(tmp_path / "base"), adapter_in(tmp_path / "theirs")
    start = "train", "start", "--data", "letters", "--model", str(base), "--adapter", str(adapter)
    assert ctl(*start, *options).exit_code == 0
    asked = daemon.executed[0][1]
    asked = asked.get("arguments", asked)  # what a dry run is asked is told within
    assert asked["adapter_folder"] == str(adapter)
    assert asked["settings"]["lora"] == "rank=2,alpha=4"
    ran = ctl(*start, *options, "--lora", "rank=4")
    assert ran.exit_code == 2
    assert "this one is there" in ran.err


def test_only_a_frozen_model_is_quantized(ctl):
    ran = begin(ctl, "--quantize", "4bit")
    assert ran.exit_code == 2
    assert "only a model that stays as it is can be quantized" in ran.err
    assert "--lora --quantize 4bit" in ran.err


def test_an_option_that_changes_nothing_needs_no_adapter(daemon, ctl):
    assert begin(ctl, "--quantize", "none").exit_code == 0
    assert "lora" not in daemon.executed[0][1]["settings"]
