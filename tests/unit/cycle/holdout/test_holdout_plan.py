"""What is held out is worked out from what is there, and stays."""

from collections import Counter
from random import Random

import pytest

from jupiterd.cycle.holdout.clusters import DOCUMENT, path_of_file
from jupiterd.cycle.holdout.holdout_choice import plan_holdout
from jupiterd.cycle.holdout.holdout_plan import Collected, HoldoutPlan
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules, wanted_parts

RULES = HoldoutRules("salt")


def collected(names, size_bytes=4000, groups=None):
    groups = groups or range(len(names))
    return [
        Collected(path_of_file(name), size_bytes, group)
        for name, group in zip(names, groups, strict=True)
    ]


def flat(documents):
    return [f"{n}.md" for n in range(documents)]


def parts_of(plan, documents):
    return Counter(plan.part_of(each.path) for each in documents)


@pytest.mark.parametrize("documents", [40, 60, 120, 400, 4000])
def test_each_part_has_the_documents_that_it_needs(documents):
    text = collected(flat(documents))
    plan, _ = plan_holdout(text, RULES)
    wanted, found = wanted_parts(documents, RULES), parts_of(plan, text)
    assert (found["gate"], found["dev"], found["vault"]) == (wanted.gate, wanted.dev, wanted.vault)
    assert wanted.gate >= RULES.least_documents
    assert found["train"] >= documents / 2


def test_clusters_are_as_large_as_they_may_be():
    many = [f"top{top}/{n}.md" for top in range(60) for n in range(4)]
    assert plan_holdout(collected(many), RULES)[0].depth == 0
    deeper = [f"top{n % 3}/sub{n % 60}/{n}.md" for n in range(240)]
    assert plan_holdout(collected(deeper), RULES)[0].depth == 1
    few = [f"top{n % 3}/sub{n % 6}/{n}.md" for n in range(60)]
    plan, reason = plan_holdout(collected(few), RULES)
    assert plan.depth == DOCUMENT
    assert "60 clusters (file, page or row)" in reason


def unequal(documents, folders):
    """Return files of folders the first of which has by far the most."""
    sizes = [max(2, documents // (2 * (n + 1))) for n in range(folders)]
    return [f"top{folder}/{n}.md" for folder, size in enumerate(sizes) for n in range(size)]


def test_of_a_few_folders_files_are_held_out_alike_and_the_gate_counts_by_folders():
    text = collected(unequal(100, 6))
    plan, reason = plan_holdout(text, RULES)
    gate = [each.path for each in text if plan.part_of(each.path) == "gate"]
    counted = Counter(map(plan.counted_as, gate))
    assert set(counted) == {f"top{n}" for n in range(6)}
    assert max(counted.values()) <= 2 * min(counted.values()) + 4
    assert len(gate) == wanted_parts(len(text), RULES).gate
    assert reason.startswith("the gate counts by 6 clusters (site, repository or topmost folder)")
    trained = {plan.counted_as(each.path) for each in text if plan.part_of(each.path) == "train"}
    assert trained == set(counted)


def test_no_more_of_a_few_large_folders_is_held_out_than_is_scored():
    text = collected([f"top{n % 6}/{n}.md" for n in range(12_000)])
    plan, _ = plan_holdout(text, RULES)
    assert parts_of(plan, text)["gate"] == 6 * RULES.max_cluster_documents


def test_where_folders_are_too_few_to_count_by_each_file_counts():
    text = collected([f"top{n % 3}/{n}.md" for n in range(90)])
    plan, _ = plan_holdout(text, RULES)
    gate = [each.path for each in text if plan.part_of(each.path) == "gate"]
    assert len({plan.counted_as(path) for path in gate}) == len(gate)


def test_a_large_folder_beside_single_files_is_no_cluster_to_count_by():
    text = collected([f"docs/{n}.md" for n in range(200)] + [f"single{n}.md" for n in range(10)])
    plan, _ = plan_holdout(text, RULES)
    gate = [each.path for each in text if plan.part_of(each.path) == "gate"]
    assert len({plan.counted_as(path) for path in gate}) == len(gate)
    assert len(gate) == wanted_parts(210, RULES).gate


def test_files_that_come_later_to_such_folders_and_new_folders_give_their_share():
    text = collected([f"top{n % 6}/{n}.md" for n in range(240)])
    plan, _ = plan_holdout(text, RULES)
    read = HoldoutPlan.from_plain(plan.to_plain())
    assert read == plan
    for top in ("top3", "unheard-of"):
        parts = Counter(read.part_of(path_of_file(f"{top}/later{n}.md")) for n in range(1000))
        assert 0.15 < parts["gate"] / 1000 < 0.35
        assert parts["dev"] > 0


def test_a_folder_and_its_copy_in_another_project_are_on_one_side():
    names = [f"top{top}/sub{n}/{m}.md" for top in range(8) for n in range(24) for m in range(4)]
    copies = [f"top5/copy{n}/{m}.md" for n in range(6) for m in range(4)]
    groups = [*range(len(names)), *range(6 * 4)]  # of the first folders of top0
    text = collected(names + copies, groups=groups)
    plan, _ = plan_holdout(text, RULES)
    assert plan.counted_depth < plan.depth
    for n in range(6):
        sides = {
            plan.part_of(path_of_file(f"{folder}/{m}.md"))
            for folder in (f"top0/sub{n}", f"top5/copy{n}")
            for m in range(4)
        }
        assert len(sides) == 1


def test_one_folder_that_has_nearly_everything_is_told_apart_further():
    names = [f"docs/{n}.md" for n in range(300)] + [f"src{n}/code.py" for n in range(100)]
    assert plan_holdout(collected(names), RULES)[0].depth == DOCUMENT


def test_a_cluster_is_never_cut():
    seed = 4
    chance = Random(seed)
    names = [f"top{chance.randrange(80)}/{n}.md" for n in range(400)]
    text = collected(names)
    plan, _ = plan_holdout(text, RULES)
    assert plan.depth == 0
    sides = {(name.split("/")[0], plan.part_of(path_of_file(name))) for name in names}
    assert len(sides) == len({top for top, _ in sides}), seed


def test_a_copy_of_a_folder_is_on_the_side_of_its_original():
    names = [f"v{version}/page{n}/text.md" for version in (1, 2) for n in range(100)]
    groups = [n for _ in (1, 2) for n in range(100)]
    plan, _ = plan_holdout(collected(names, groups=groups), RULES)
    for n in range(100):
        sides = {plan.part_of(path_of_file(f"v{version}/page{n}/text.md")) for version in (1, 2)}
        assert len(sides) == 1


def test_a_notice_in_every_folder_joins_none():
    names, groups = [], []
    for top in range(60):
        for n in range(5):
            names.append(f"top{top}/{n}.md")
            groups.append(-1 if n == 0 else len(names))
    plan, _ = plan_holdout(collected(names, groups=groups), RULES)
    assert plan.joined == {}


def test_a_cluster_that_would_be_most_of_the_gate_is_trained_on():
    names = [f"huge/{n}.md" for n in range(60)] + [f"t{n}/{m}.md" for n in range(90) for m in "ab"]
    for number in range(20):
        text = collected(names)
        plan, _ = plan_holdout(text, HoldoutRules(f"salt-{number}"))
        assert plan.part_of(path_of_file("huge/1.md")) == "train" or plan.depth == DOCUMENT


def test_what_comes_later_falls_where_its_cluster_fell():
    names = [f"top{top}/{n}.md" for top in range(60) for n in range(4)]
    plan, _ = plan_holdout(collected(names), RULES)
    read = HoldoutPlan.from_plain(plan.to_plain())
    assert read == plan
    for top in range(60):
        before = plan.part_of(path_of_file(f"top{top}/0.md"))
        assert read.part_of(path_of_file(f"top{top}/new.md")) == before
    new = Counter(read.part_of(path_of_file(f"later{n}/a.md")) for n in range(2000))
    assert 0.15 < new["gate"] / 2000 < 0.35


def test_another_salt_holds_out_other_clusters():
    text = collected(flat(400))
    plans = [plan_holdout(text, HoldoutRules(salt))[0] for salt in ("a", "b")]
    held = [{each.path for each in text if plan.part_of(each.path) != "train"} for plan in plans]
    assert len(held[0] & held[1]) < 60


def test_the_order_of_documents_plays_no_part():
    names = [f"top{n % 60}/{n}.md" for n in range(240)]
    text = collected(names)
    assert plan_holdout(text, RULES)[0] == plan_holdout(text[::-1], RULES)[0]


def test_a_fraction_in_the_domain_file_counts():
    names = [f"top{top}/{n}.md" for top in range(200) for n in range(4)]
    told = HoldoutRules("s", fraction=0.2, dev=0.25, vault=0.0, min_clusters=10)
    text = collected(names)
    plan, _ = plan_holdout(text, told)
    found = parts_of(plan, text)
    assert (plan.depth, plan.fraction, plan.dev, plan.vault) == (0, 0.2, 0.25, 0.0)
    assert 0.1 < (found["gate"] + found["dev"]) / 800 < 0.3
    assert not found["vault"]


def test_shares_without_a_fraction_divide_what_is_held_out():
    text = collected(flat(400))
    plan, _ = plan_holdout(text, HoldoutRules("s", dev=0.4, vault=0.1))
    found = parts_of(plan, text)
    assert (found["gate"], found["dev"], found["vault"]) == (50, 40, 10)


def test_short_documents_are_not_counted():
    text = collected(flat(60)) + collected([f"short{n}.md" for n in range(200)], 100)
    text = [Collected(each.path, each.size_bytes, n) for n, each in enumerate(text)]
    plan, _ = plan_holdout(text, RULES)
    long = [each for each in text if each.size_bytes > 256]
    assert parts_of(plan, long)["gate"] == wanted_parts(60, RULES).gate
