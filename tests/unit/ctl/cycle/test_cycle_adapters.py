"""Cycles that begin with an adapter of others: what reaches the daemon, and what is refused."""

from pathlib import Path

import pytest

from jupiterd.ctl.sources.domain_files import shipped_domains
from tests.unit.ctl.sources.test_adapter_source import adapter_in, base_in

START = ("cycle", "start", "--domain", "python")
WORDS = "rank=2,alpha=4"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = base_in(tmp_path / "base")
    (folder / "tokenizer.json").write_text("{}")
    return folder


def domain_that_says(tmp_path: Path, *lines: str) -> str:
    file = tmp_path / "based.yaml"
    text = shipped_domains()["python"].read_text().replace("domain: python", "domain: based")
    file.write_text("\n".join([text, *lines, ""]))
    return str(file)


@pytest.mark.parametrize("verb", ["start", "plan"])
def test_it_is_named_beside_its_base_or_alone_where_that_is_known(
    daemon, ctl, tmp_path, base, verb
):
    adapter = adapter_in(tmp_path / "theirs", "../base")
    asked = ("cycle", verb, "--domain", "python")
    daemon.results["cycle.plan"] = {"schema": "jupiter/v1", "domain": "python", "rounds": 1}
    for given in (("--init", str(base), "--adapter", str(adapter)), ("--init", str(adapter))):
        assert ctl(*asked, *given).exit_code == 0
        told = daemon.executed[-1][1]
        assert told["init"]["weights_folder"] == str(base)
        assert told["init"]["adapter_folder"] == str(adapter)
        assert "lora" not in told["init"]
        assert told["training"]["lora"] == WORDS


def test_a_domain_names_it_beside_its_own_model_alone(daemon, ctl, tmp_path, base):
    adapter = adapter_in(tmp_path / "theirs")
    file = domain_that_says(tmp_path, f"init: {base}", f"adapter: {adapter}")
    other = base_in(tmp_path / "other")
    (other / "tokenizer.json").write_text("{}")
    ctl("cycle", "start", "--domain", file)
    ctl("cycle", "start", "--domain", file, "--init", str(other))
    told, without = (arguments for _, arguments in daemon.executed)
    assert told["init"]["adapter_folder"] == str(adapter)
    assert told["training"] == {"lora": WORDS}
    assert "adapter_folder" not in without["init"]
    assert "training" not in without


@pytest.mark.parametrize(
    ("more", "reason", "hint"),
    [
        (("--lora", "rank=4"), "--lora says what a new adapter is", "leave out --lora"),
        (("--init", "scratch"), "this cycle draws its own", "--init BASE --adapter FOLDER"),
    ],
)
def test_what_cannot_be_never_reaches_the_daemon(daemon, ctl, tmp_path, base, more, reason, hint):
    adapter = adapter_in(tmp_path / "theirs")
    ran = ctl(*START, "--init", str(base), "--adapter", str(adapter), *more)
    assert ran.exit_code == 2
    assert reason in ran.err
    assert hint in ran.err
    assert daemon.executed == []


def test_one_of_another_base_is_refused_by_the_module_that_tells(daemon, ctl, tmp_path, base):
    other = base_in(tmp_path / "other", hidden_size=8)
    (other / "tokenizer.json").write_text("{}")
    ran = ctl(*START, "--init", str(other), "--adapter", str(adapter_in(tmp_path / "theirs")))
    assert ran.exit_code == 2
    assert "it is for another base" in ran.err
    assert daemon.executed == []
