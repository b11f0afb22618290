"""Clean text is parted: what is held out is never trained on, in no round, nor is a copy of it."""

import json
import random
from dataclasses import replace

import pytest

from jupiterd.cycle.data.lineage import text_hash
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules
from jupiterd.errors import EmptySourceError, TooLittleTextError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.clean.drops import read_drops
from jupiterd.workers.data.pack.hold_out import HoldOutParams, SourceBatches, hold_out, read_before
from jupiterd.workers.data.sorted_samples import SortedSampleWriter
from jupiterd.workers.samples.sample_file import read_samples
from tests.support.workers.data_material import files_of, real, run_worker

RULES = HoldoutRules("salt")
WORDS = [f"{first}{second}" for first in "abcdefghij" for second in "klmnopqrstuvwxyz"]


def text(number, words=90):
    """Return a text that is like no other."""
    chance = random.Random(number)
    return " ".join(chance.choices(WORDS, k=words)) + f" text {number}.\n"


def document(name, words, source="docs"):
    """Return a document of a folder; of its words come its clusters."""
    top = name.split("/")[0] if "/" in name else name.removesuffix(".md")
    found = real(words, top, source=source)
    return replace(found, source_uri=f"folder:texts/{name}")


def documents(count, folders=0, source="docs", first=0):
    names = [f"f{n % folders}/{source}{n}.md" if folders else f"{source}{n}.md"
             for n in range(first, first + count)]  # fmt: skip
    return [document(name, text(f"{source}{name}"), source) for name in names]


def cleaned(folder, samples):
    with SortedSampleWriter(folder) as writer:
        for sample in samples:
            writer.add(sample)
    return folder


def do(tmp_path, samples, before=None, name="out", **changes):
    """Part the samples; return counts and what people are told."""
    output = tmp_path / name
    batches = SourceBatches([cleaned(tmp_path / f"{name}-clean", samples)], [])
    folders = (None, None) if before is None else (before / "plan", before / "holdout")
    params = replace(HoldOutParams(RULES, "en"), **changes)
    return hold_out(batches, read_before(*folders), params, output)


def side(tmp_path, which, name="out"):
    return {sample.id: sample for sample in read_samples(tmp_path / name / which)}


def reasons(tmp_path, name="out"):
    return sorted(str(found.reason) for _, found in read_drops(tmp_path / name / "dropped"))


def test_everything_is_on_one_side_and_the_gate_has_what_it_needs(tmp_path):
    samples = documents(60, folders=6)
    counts, told = do(tmp_path, samples)
    train, held = side(tmp_path, "train"), side(tmp_path, "holdout")
    assert train.keys() | held.keys() == {sample.id for sample in samples}
    assert not train.keys() & held.keys()
    assert (counts["gate_documents"], counts["dev_documents"]) == (15, 5)
    assert (counts["train_documents"], counts["holdout_documents"]) == (40, 20)
    assert {sample.split for sample in train.values()} == {"train"}
    assert {sample.split for sample in held.values()} == {"gate", "dev"}
    assert told["clusters_are"] == "site, repository or topmost folder"
    assert str(told["holdout"]).startswith(
        "15 documents of 6 clusters for the gate, 5 for development; it shows, with a chance "
        "of 80%, a gain from about 0.2 bits per byte in round 1 (over counting) and from 0.0"
    )
    assert {sample.cluster_id for sample in held.values() if sample.split == "gate"} == {
        f"f{n}" for n in range(6)
    }


def test_where_there_are_too_few_folders_to_count_by_it_is_told_of_whom_the_verdict_speaks(
    tmp_path,
):
    _, told = do(tmp_path, documents(60, folders=3))
    assert told["clusters_are"] == "file, page or row"
    assert str(told["holdout"]).endswith("; the verdict speaks for these 3 folders or sites alone")


def test_documents_carry_the_cluster_that_was_chosen_for_them(tmp_path):
    do(tmp_path, documents(240, folders=80))
    found = [*side(tmp_path, "train").values(), *side(tmp_path, "holdout").values()]
    assert {sample.cluster_id for sample in found} == {f"f{n}" for n in range(80)}
    sides = {(sample.cluster_id, sample.split) for sample in found}
    assert len(sides) == 80


def test_doing_it_again_in_another_order_gives_the_same_bytes(tmp_path):
    samples = documents(60)
    do(tmp_path, samples, name="one")
    do(tmp_path, samples[::-1], name="two")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_copies_are_on_one_side(tmp_path):
    samples = documents(80)
    again = [
        document(f"copy{n}.md", sample.text.replace(" text ", " copy "))
        for n, sample in enumerate(samples[:40])
    ]
    equal = [document(f"equal{n}.md", sample.text) for n, sample in enumerate(samples[40:60])]
    counts, _ = do(tmp_path, samples + again + equal)
    train, held = side(tmp_path, "train"), side(tmp_path, "holdout")
    for sample, copy in zip(samples, again, strict=False):
        sides = [each.id in train for each in (sample, copy) if each.id in train or each.id in held]
        assert len(set(sides)) == 1
    assert not train.keys() & held.keys()
    trained = {
        sample.text.partition(" text ")[0].partition(" copy ")[0] for sample in train.values()
    }
    for sample in held.values():
        assert sample.text.partition(" text ")[0].partition(" copy ")[0] not in trained
    assert counts["dropped.near-duplicate"] > 0
    assert len(held) == counts["holdout_documents"]


def test_too_little_text_ends_it_before_anything_is_trained(tmp_path):
    with pytest.raises(TooLittleTextError) as caught:
        do(tmp_path, documents(17), left_out={"few-letters": 380, "too-short": 12, "list": 4})
    assert caught.value.message.startswith("17 documents, about ")
    assert "tokens; a verdict needs at least 40" in caught.value.message
    assert caught.value.message.endswith("(396 more were left out: few-letters 380, too-short 12)")
    assert caught.value.hint == "add text, or start with --without-verdict"


def test_who_wants_no_verdict_goes_on_with_little(tmp_path):
    counts, told = do(tmp_path, documents(17), needs_verdict=False)
    assert counts["train_documents"] >= 9
    assert str(told["holdout"]).endswith("too few for a verdict")


def test_no_text_at_all_says_why(tmp_path):
    with pytest.raises(EmptySourceError, match="left no real text: few-letters, list"):
        do(tmp_path, [], left_out={"list": 4, "few-letters": 3})


def test_what_is_held_out_stays_and_further_text_of_its_clusters_is_not_trained_on(tmp_path):
    before = documents(240, folders=80)
    do(tmp_path, before, name="one")
    held = side(tmp_path, "holdout", "one")
    more = documents(160, folders=80, first=240)
    changed = [replace(s, text=s.text + "x", id=text_hash(s.text + "x")) for s in before[:100]]
    counts, _ = do(tmp_path, before[100:] + changed + more, tmp_path / "one", "two")
    assert side(tmp_path, "holdout", "two") == held
    clusters = {sample.cluster_id for sample in held.values()}
    trained = side(tmp_path, "train", "two").values()
    assert not {sample.cluster_id for sample in trained} & clusters
    assert counts["late_documents"] > 0
    assert set(reasons(tmp_path, "two")) == {"in-holdout"}
    assert not {s.text.partition(" text")[0] for s in trained} & {
        s.text.partition(" text")[0] for s in held.values()
    }


def test_what_was_trained_on_is_never_held_out_later(tmp_path):
    before = documents(60)
    do(tmp_path, before, name="one")
    trained = side(tmp_path, "train", "one")
    copies = [
        document(f"new{n}.md", sample.text.replace(" text ", " again "), "late")
        for n, sample in enumerate(trained.values())
    ]
    do(tmp_path, before + copies, tmp_path / "one", "two")
    assert side(tmp_path, "holdout", "two") == side(tmp_path, "holdout", "one")


def test_of_a_source_that_answers_at_last_some_is_held_out(tmp_path):
    before = documents(120)
    do(tmp_path, before, name="one")
    late = documents(120, source="late")
    counts, _ = do(tmp_path, before + late, tmp_path / "one", "two")
    first, second = side(tmp_path, "holdout", "one"), side(tmp_path, "holdout", "two")
    assert first.items() <= second.items()
    new = [sample for name, sample in second.items() if name not in first]
    assert {sample.source for sample in new} == {"late"}
    assert 0.15 * 120 < len(new) < 0.5 * 120
    assert not counts["late_documents"]
    third, _ = do(tmp_path, before + late, tmp_path / "two", "three")
    assert side(tmp_path, "holdout", "three") == second
    assert files_of(tmp_path / "three" / "plan") == files_of(tmp_path / "two" / "plan")
    assert third["train_documents"] == counts["train_documents"]


def test_a_later_round_has_a_verdict_however_little_is_left(tmp_path):
    do(tmp_path, documents(60), name="one")
    counts, _ = do(tmp_path, documents(3), tmp_path / "one", "two")
    assert counts["gate_documents"] == 15


def test_the_task_leaves_the_plan_for_later_rounds(tmp_path):
    inputs = {"clean.0": cleaned(tmp_path / "clean", documents(60))}
    params = {"holdout": {"salt": "s"}, "language": "en", "needs_verdict": True}
    end = run_worker("hold_out", params, inputs, tmp_path / "out")
    assert isinstance(end, TaskFinished), end
    assert sorted(end.outputs) == ["dropped", "holdout", "plan", "train"]
    told = json.loads((tmp_path / "out" / "plan" / "plan.json").read_text())
    assert told["sources"] == ["docs"]
    assert "60 clusters" in told["reason"]
