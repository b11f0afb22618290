"""`jupiterctl model eval` without tasks: bits per byte on the text that a round was judged by."""

import json
import math
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.support.ctl.model_material import MODEL, row
from tests.support.workers.tiny_models import write_model
from tests.unit.ctl.model.test_lm_eval_export import judged
from tests.unit.ctl.model.test_model_eval import warm_workers

__all__ = ["judged", "warm_workers"]

OTHER = "f" * 64


@pytest.fixture
def known(daemon, tmp_path: Path) -> None:
    """Let the daemon know the model that was judged, and what its cycle began with."""
    files = {"id": MODEL, "name": "python/2", "files_at": str(tmp_path / "stored")}
    daemon.documents["model_files"] = {"model": files}
    base = write_model(tmp_path / "base", "llama")
    began = {"id": OTHER, "name": "python/2/base", "files_at": str(base)}
    daemon.documents["model_files/python/2/base"] = {"model": began}
    daemon.documents["models"] = {"models": [row(3, id=OTHER, verdict=None), row(2, id=MODEL)]}


@pytest.mark.timeout(120)
def test_a_model_has_the_bits_per_byte_of_its_verdict(warm_workers, judged, known, ctl):
    ran = ctl("model", "eval", "python/2", "--beside", "base", "-o", "json")
    assert ran.exit_code == 0, ran.err
    found = json.loads(ran.out)["eval"]
    own, base = (each["bits_per_byte"] for each in found["models"])
    nats = sum(each.candidate_nats for each in judged.documents)
    size = sum(each.bytes for each in judged.documents)
    assert own["value"] == pytest.approx(nats / math.log(2) / size, rel=1e-6)
    assert (found["round"], found["documents"], found["bytes"]) == ("python/2", 12, size)
    assert own["low"] < own["value"] < own["high"]
    assert found["difference"]["value"] == pytest.approx(own["value"] - base["value"])


def test_before_the_first_verdict_there_is_no_text(known, daemon, ctl):
    daemon.documents["models"] = {"models": [row(3, verdict=None)]}
    ran = ctl("model", "eval", "python/2")
    assert ran.exit_code == 6
    assert "no gate has judged a model yet" in ran.err


def test_what_two_models_differ_by_is_told():
    from jupiterd.ctl.model.held_out_eval import held_out_lines

    figure = {"value": 1.5, "low": 1.25, "high": 1.75}
    document = {
        "round": "python/2",
        "documents": 12,
        "models": [{"model": name, "bits_per_byte": figure} for name in ("python/2", "base")],
        "difference": {"value": -0.5, "low": -0.625, "high": -0.375},
    }
    assert held_out_lines(document) == [
        "held-out text of python/2: 12 documents",
        "model     bits per byte",
        "python/2  1.5000 (95 %: 1.2500 to 1.7500)",
        "base      1.5000 (95 %: 1.2500 to 1.7500)",
        "python/2 beside base: -0.5000 (95 %: -0.6250 to -0.3750), better",
    ]
    alone = document | {"difference": None, "models": document["models"][:1]}
    assert len(held_out_lines(alone)) == 3
