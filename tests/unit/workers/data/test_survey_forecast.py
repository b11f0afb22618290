"""What a look at all documents foretells is what a cycle then holds out of the same real text."""

import shutil
import sysconfig
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from jupiterd.cycle.domain.data_sources import DataSource
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules
from jupiterd.cycle.holdout.verdict_check import Found
from jupiterd.workers.data.clean.clean_batch import TextRules, clean
from jupiterd.workers.data.collectors.kinds import open_collector
from jupiterd.workers.data.pack.hold_out import Before, HoldOutParams, SourceBatches, hold_out
from jupiterd.workers.data.survey import survey_sample
from jupiterd.workers.data.survey.survey_sources import survey
from jupiterd.workers.samples.sample_file import read_samples
from tests.support.workers.collecting import PARAMS, collect

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
TOLD = HoldoutRules("python-11", fraction=0.2, dev=0.2, vault=0.0, max_cluster_documents=8)
"""As the domain that is shipped for Python has it."""


@pytest.fixture(autouse=True)
def reads_all(monkeypatch):
    """Let a look read everything."""
    monkeypatch.setattr(survey_sample, "MOST_READ", 1_000_000)


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """Give modules and packages of Python's library, with copies of some."""
    folder = tmp_path_factory.mktemp("code")
    for path in sorted(LIBRARY.glob("[a-d]*.py")):
        shutil.copy(path, folder)
    for package in ("json", "email", "logging", "concurrent", "html", "http"):
        shutil.copytree(LIBRARY / package, folder / package, ignore=shutil.ignore_patterns("__py*"))
    shutil.copytree(folder / "email", folder / "email-again")
    shutil.copy(folder / "json" / "decoder.py", folder / "html" / "decoder.py")
    return folder


def foretold(sources, language, rules) -> Found:
    asked = {
        "language": language, "license_policy": {}, "rules_off": [], "holdout": asdict(rules),
    }  # fmt: skip
    found = survey({"sources": sources, "rules": asked, "within_s": 600.0})
    assert found.is_whole
    return found.found


def done(tmp_path, sources, language, rules) -> Found:
    """Do what a cycle does: read, clean and part."""
    batches = SourceBatches([], [])
    for number, each in enumerate(sources):
        source = TypeAdapter(DataSource).validate_python(each)
        out = tmp_path / str(number)
        collect(open_collector(source), out, replace(PARAMS, language=language, source=source.name))
        clean([out / "documents"], out, TextRules(language))
        batches = SourceBatches(
            [*batches.clean, out / "clean"], [*batches.dropped, out / "dropped"]
        )
    params = HoldOutParams(rules, language, needs_verdict=False)
    hold_out(batches, Before(), params, tmp_path / "out")
    clean_ones = [sample for folder in batches.clean for sample in read_samples(folder)]
    held = [
        (sample.split, sample.cluster_id, len(sample.text.encode()))
        for sample in read_samples(tmp_path / "out" / "holdout")
    ]
    size = sum(len(sample.text.encode()) for sample in clean_ones)
    return Found.of(held, len(clean_ones), size, rules)


def of_folder(path, name="mine"):
    return {"kind": "folder", "name": name, "path": str(path)}


@pytest.mark.full
@pytest.mark.parametrize("rules", [HoldoutRules("salt"), TOLD], ids=["worked out", "told"])
def test_a_whole_look_foretells_what_a_cycle_does(code, tmp_path, rules):
    sources = [of_folder(code)]
    found = done(tmp_path, sources, "code:python", rules)
    assert found.gate_documents > 5
    assert foretold(sources, "code:python", rules) == found


@pytest.mark.full
def test_copies_in_two_sources_are_seen(code, tmp_path):
    sources = [of_folder(code / "email", "one"), of_folder(code / "email-again", "two")]
    found = done(tmp_path, sources, "code:python", HoldoutRules("salt"))
    assert foretold(sources, "code:python", HoldoutRules("salt")) == found
