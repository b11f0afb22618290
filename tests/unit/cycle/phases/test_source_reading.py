"""The items that read a source in parts, and what follows them."""

from dataclasses import replace

from jupiterd.cycle.base.work_item import WorkItem, WorkResult
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.cycle.phases.source_reading import source_parts
from jupiterd.cycle.phases.steps import RunItems
from jupiterd.cycle.phases.table import next_step
from tests.support.cycle.round_walk import DOMAIN, SHAPE, artifact, view, walk

SITES = [f"https://{name}.example/" for name in ("a", "b", "c")]


def domain_of_sites() -> Domain:
    named = f"  - {{kind: web, name: sites, urls: [{', '.join(SITES)}]}}\n"
    return parse_domain(DOMAIN.replace("generation:", f"{named}generation:"), "tiny.yaml")


def open_items(completed: dict[str, WorkResult], **changes: object) -> dict[str, WorkItem]:
    step, _ = next_step(view(completed, **changes), domain_of_sites(), SHAPE)
    assert isinstance(step, RunItems)
    return {item.id: item for item in step.items}


PARTS = [f"r1/collect/2/{n}" for n in range(3)]


def test_each_part_is_an_item_that_names_its_own_site_alone() -> None:
    items = open_items({})
    assert list(items) == ["r1/collect/0", "r1/collect/1", *PARTS]
    assert [items[part].params["source"]["urls"] for part in PARTS] == [[url] for url in SITES]
    assert {items[part].params["source"]["name"] for part in PARTS} == {"sites"}
    assert [part.place for part in source_parts(view({}), domain_of_sites())] == [
        "", "", "1 of 3", "2 of 3", "3 of 3",
    ]  # fmt: skip


def test_what_the_parts_have_found_is_cleaned_as_one_source_in_their_order() -> None:
    completed = {name: WorkResult({"documents": artifact(name)}) for name in open_items({})}
    cleaning = open_items(completed)
    assert list(cleaning) == [f"r1/collect/clean/{n}" for n in range(3)]
    assert cleaning["r1/collect/clean/2"].inputs == {
        "samples": artifact(PARTS[0]), "samples.1": artifact(PARTS[1]),
        "samples.2": artifact(PARTS[2]),
    }  # fmt: skip


def test_pieces_follow_from_the_bytes_of_all_parts() -> None:
    completed = {name: WorkResult({"documents": artifact(name)}) for name in open_items({})}
    for part in PARTS:
        completed[part] = replace(completed[part], counts={"bytes": float(30 << 20)})
    assert [name for name in open_items(completed) if "/2" in name] == [
        "r1/collect/clean/2-0", "r1/collect/clean/2-1",
    ]  # fmt: skip


def test_a_part_that_was_lost_leaves_the_others() -> None:
    completed = {name: WorkResult({"documents": artifact(name)}) for name in open_items({})}
    completed[PARTS[0]] = WorkResult({}, {}, {"lost_source": "sites"})
    assert open_items(completed)["r1/collect/clean/2"].inputs == {
        "samples": artifact(PARTS[1]), "samples.1": artifact(PARTS[2]),
    }  # fmt: skip
    for part in PARTS:
        completed[part] = completed[PARTS[0]]
    assert "r1/collect/clean/2" not in open_items(completed)


def test_each_part_asks_what_has_changed_of_what_it_found_itself() -> None:
    completed: dict[str, WorkResult] = {}
    walk(domain_of_sites(), completed)
    items = open_items(completed, round=2)
    assert [items[f"r2/collect/2/{n}"].inputs for n in range(3)] == [
        {f"previous_{name}": artifact(f"{part}-{name}") for name in ("documents", "state")}
        for part in PARTS
    ]


def test_a_cycle_that_has_read_a_source_whole_goes_on_so() -> None:
    whole = {"documents": artifact("d"), "state": artifact("s")}
    completed = {f"r1/collect/{n}": WorkResult(whole) for n in (0, 2)}
    assert list(open_items(completed)) == ["r1/collect/1"]
    completed["r1/collect/1"] = WorkResult(whole)
    assert open_items(completed)["r1/collect/clean/2"].inputs == {"samples": artifact("d")}
    items = open_items(completed, round=2)
    assert list(items) == [f"r2/collect/{n}" for n in range(3)]
    assert items["r2/collect/2"].inputs["previous_documents"] == artifact("d")
    assert items["r2/collect/2"].params["source"]["urls"] == SITES


def test_a_cycle_that_holds_out_as_it_reads_knows_no_parts() -> None:
    old = {"train": artifact("t"), "holdout": artifact("h")}
    assert list(open_items({"r1/collect/0": WorkResult(old)})) == ["r1/collect/1", "r1/collect/2"]
