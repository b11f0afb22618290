"""What a phase has made, as a daemon shows it to people."""

from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import Fact
from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.data.lineage import Sample
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.locations import config_folder
from jupiterd.workers.data.clean.drops import Drops
from jupiterd.workers.samples.sample_file import SampleWriter
from tests.support.cluster.building import NODES, started, work_done
from tests.support.daemon.shown import shown
from tests.support.daemon.two_nodes import found, serving
from tests.support.workers.data_material import real as sample

DOMAIN = (config_folder() / "domains" / "python.yaml").read_text()


def drops(samples: list[Sample]) -> Drops:
    dropped = Drops()
    for number, each in enumerate(samples):
        dropped.add(each, list(DropReason)[number % 2])
    return dropped


async def test_a_few_samples_that_were_kept_and_dropped_are_shown(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        with SampleWriter(tmp_path / "kept") as writer:
            for number in range(9):
                writer.add(sample(f"kept {number}"))
        drops([sample(f"dropped {number}") for number in range(9)]).write(tmp_path / "dropped")
        outputs = {n: one.artifact_cache.store.ingest(tmp_path / n) for n in ("kept", "dropped")}
        counts = {"kept": 9.0, "dropped": 9.0}
        filtered = replace(work_done("r1/filter/0", NODES[0]), outputs=outputs, counts=counts)
        await found(one, facts=(replace(started(), domain_yaml=DOMAIN), filtered))
        review = (await shown(one, "review"))["review"]
        assert (review["round"], review["phase"]) == (1, "filter")
        assert (review["in"], review["out"], review["redoable"]) == (18, 9, ["filter"])
        assert [each["text"][:4] for each in review["kept_samples"]] == ["kept"] * 5
        assert len(review["dropped_samples"]) == 5
        assert {each["reason"] for each in review["dropped_samples"][:2]} == {
            str(reason) for reason in list(DropReason)[:2]
        }
        assert review["settings"]["generation.temperature"] == "0.8"

        named = (await shown(one, f"review/{review['cycle'][:8]}/1/filter"))["review"]
        assert (len(named["kept_samples"]), len(named["dropped_samples"])) == (9, 9)
        nothing = (await shown(one, "review//1/collect"))["review"]
        assert nothing["kept_samples"] == []
        with pytest.raises(UsageError, match="no ROUND/PHASE"):
            await shown(one, "review//one/filter")


async def test_under_way_the_newest_samples_are_shown_and_refused_answers_among_them(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        facts: list[Fact] = [replace(started(), domain_yaml=DOMAIN)]
        for number, template in enumerate(("summary", "explanation")):
            made, refused = tmp_path / f"made-{number}", tmp_path / f"refused-{number}"
            with SampleWriter(made) as writer:
                for each in range(9):
                    writer.add(replace(sample(f"{template} {each}"), template=template))
            drops([sample(f"refused {template}")]).write(refused)
            folders = {"samples": made, "refused": refused}
            outputs = {
                name: one.artifact_cache.store.ingest(path) for name, path in folders.items()
            }
            item = work_done(f"r1/generate/{number}", NODES[0])
            facts.append(replace(item, phase="generate", outputs=outputs))
        facts.append(replace(work_done("r1/pack/0", NODES[0]), phase="pack", outputs={}))
        await found(one, facts=(*facts,))
        review = (await shown(one, "review"))["review"]
    assert (review["phase"], review["samples_phase"]) == ("pack", "generate")
    assert [each["template"] for each in review["kept_samples"]] == [
        "summary", "summary", "summary", "explanation", "explanation",
    ]  # fmt: skip
    assert {each["text"] for each in review["dropped_samples"]} == {
        "refused summary",
        "refused explanation",
    }


async def test_without_a_phase_that_has_ended_there_is_nothing_to_show(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(),))
        with pytest.raises(NotFoundError, match="no phase"):
            await shown(one, "review")
        with pytest.raises(NotFoundError, match="there is no cycle"):
            await shown(one, "review/beef")
