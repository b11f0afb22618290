"""The items of small students: which are due, in which order, and that their names stay."""

import random

import pytest

from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.generation.promotion import ActiveGenerators
from jupiterd.cycle.phases.proxies import synthetic_share
from jupiterd.cycle.phases.steps import CloseRound, RunItems, TrainRound
from jupiterd.cycle.phases.table import next_step
from tests.support.cycle.round_walk import DOMAIN, SHAPE, artifact, view

SEEDS = (7001, 7002)
OUTPUTS = {
    "collect": ("documents", "state"),
    "hold_out": ("train", "holdout", "plan", "dropped"),
    "generate": ("samples", "parents"),
    "clean": ("clean", "dropped"),
    "unite": ("kept", "dropped"),
    "pack": ("shards", "tokenizer"),
    "evaluate": ("scores",),
    "gate": ("verdict",),
    "choose_proxy_text": ("real", "yardstick", "synthetic"),
    "pack_arm": ("shards",),
    "train_proxy": ("run",),
}


NO_ROOM = "the device runs out of memory with a single sequence at a time"

WRITING = ActiveGenerators({"complete_function": (artifact("student"),)})
"""A student writes."""


def domain_with(gate: str = "", text: str = DOMAIN) -> Domain:
    return parse_domain(text.replace("gate: {proxies: off}", f"gate: {{{gate}}}"), "tiny.yaml")


@pytest.fixture
def domain() -> Domain:
    return domain_with()


class Cluster:
    """Does items as a cluster would, with results that a test chooses."""

    def __init__(self, verdict: str = "PROMOTE", **changes: object) -> None:
        self.completed: dict[str, WorkResult] = {}
        self.verdict = verdict
        self.bpb = {"mix": 2.5, "real": 2.5, "candidate": 2.5, "incumbent": 2.5}
        self.usable = 10
        self.yardstick = 5
        self.share = 0.3
        """Of generated text, in a round's packing and in each arm."""
        self.real_bytes = 40_000.0
        """Of the text that all arms have."""
        self.changes = changes
        self.too_large: frozenset[str] = frozenset()
        """Students that nobody has memory for."""
        self.asked: list[WorkItem] = []

    def done(self, item: WorkItem) -> None:
        self.asked.append(item)
        if item.id.split("/")[-2] in self.too_large or item.id.split("/")[-1] in self.too_large:
            self.completed[item.id] = WorkResult({}, {}, {"without": NO_ROOM})
            return
        made = {name: artifact(f"{item.id}-{name}") for name in OUTPUTS[item.task]}
        self.completed[item.id] = WorkResult(made, self._counts(item), self._summary(item))

    def _counts(self, item: WorkItem) -> dict[str, float]:
        synthetic = 40.0 if item.phase is Phase.PACK and item.id.startswith("r2/") else 0.0
        packed = {"bytes": 1000.0, "synthetic_bytes": 1000.0 * self.share}
        return {
            "pack": {"synthetic_documents": synthetic, "tokens_per_byte": 0.25, **packed},
            "generate": {"prompts": 10.0},
            "choose_proxy_text": {
                "yardstick_documents": float(self.yardstick),
                "proxy_bytes": self.real_bytes,
            },
            "pack_arm": {
                "arm_synthetic_documents": float(self.usable),
                "arm_synthetic_share": self.share if self.usable else 0.0,
            },
        }.get(item.task, {})

    def _summary(self, item: WorkItem) -> dict[str, object]:
        if item.task == "gate":
            return {"verdict": self.verdict}
        if item.task != "train_proxy":
            return {}
        arm = str(item.params["arm"])
        told = {"arm": arm, "seed": item.params["seed"], "bpb": self.bpb[arm]}
        fixed = {"documents": 5, "tokens": 9, "parameters": 9, "synthetic_share": 0.3}
        return told | fixed | {"shards": "s", "engine": "torch on cpu", "spread_bpb": 0.01}

    def step(self, domain: Domain, round_number: int, trained: str):
        now = view(
            self.completed,
            round=round_number,
            candidate=artifact(trained) if trained else None,
            **self.changes,
        )
        return next_step(now, domain, SHAPE)[0]

    def walk(self, domain: Domain, round_number: int = 1) -> CloseRound:
        trained = ""
        for _ in range(40):
            step = self.step(domain, round_number, trained)
            if isinstance(step, CloseRound):
                return step
            if isinstance(step, TrainRound):
                trained = f"model-{round_number}"
                continue
            for item in step.items:
                self.done(item)
        raise AssertionError("the round never ends")

    def names(self, beginning: str = "") -> list[str]:
        return [item.id for item in self.asked if f"/proxies/{beginning}" in item.id]

    def item(self, name: str) -> WorkItem:
        return next(item for item in self.asked if item.id == name)


def of_candidate(number: int, *names: str) -> list[str]:
    return [f"r{number}/gate/proxies/{name}/model-{number}0" for name in names]


def students(*arms: str) -> list[str]:
    return [f"{arm}-{seed}" for arm in arms for seed in SEEDS]


def test_a_first_candidate_is_compared_with_real_text_alone(domain: Domain) -> None:
    cluster = Cluster()
    closed = cluster.walk(domain)
    assert cluster.names() == of_candidate(
        1,
        "text",
        "write-candidate-0",
        "arm-candidate",
        "arm-real",
        *students("candidate", "real"),
    )
    last = cluster.asked[-1]
    assert last.id == "r1/gate/1/model-10"
    assert closed.verdict is cluster.completed[last.id]
    assert sorted(last.inputs) == [f"proxies.{n}" for n in range(4)] + ["scores.0", "scores.1"]
    assert last.params["scores"] == last.inputs


@pytest.mark.parametrize("verdict", ["HOLD", "REJECT", "ABSTAIN"])
def test_where_an_earlier_question_decides_none_are_trained(domain: Domain, verdict: str) -> None:
    cluster = Cluster(verdict)
    cluster.walk(domain)
    assert cluster.names() == []
    assert cluster.asked[-1].id == "r1/gate/0/model-10"


@pytest.mark.parametrize(
    ("gate", "text", "told"),
    [
        ("proxies: off", DOMAIN, "not needed: the domain's gate.proxies are off"),
        (
            "",
            DOMAIN.replace("[{kind: complete_function, samples: 10}]", "[]"),
            "not needed: this domain has no templates, so a promoted student writes nothing",
        ),
    ],
)
def test_where_they_are_not_needed_the_gate_is_told_why(gate: str, text: str, told: str) -> None:
    cluster = Cluster()
    cluster.walk(domain_with(gate, text))
    assert cluster.names() == []
    assert cluster.asked[-1].params["teaching"] == {"why_not": told}


def second_round(domain: Domain, verdict: str = "PROMOTE", **changes: object) -> Cluster:
    cluster = Cluster(verdict, active_generators=WRITING, **changes)
    cluster.walk(domain, 1)
    cluster.asked.clear()
    cluster.walk(domain, 2)
    return cluster


def test_the_control_of_a_round_with_synthetic_text_needs_no_winner(domain: Domain) -> None:
    cluster = second_round(domain, "HOLD")
    control = ("text", "arm-mix", "arm-real", *students("mix", "real"))
    assert cluster.names() == [f"r2/evaluate/proxies/{name}" for name in control]
    packed = cluster.item("r2/pack/0").params
    text = cluster.item("r2/evaluate/proxies/text").params
    assert text["packed"] == {"synthetic_share": packed["synthetic_share"], "seed": packed["seed"]}
    judging = cluster.asked[-1]
    assert judging.id == "r2/gate/0/model-20"
    assert [name for name in judging.inputs if "proxies" in name] == [
        f"proxies.{number}" for number in range(4)
    ]


def test_candidate_and_generator_write_of_the_same_documents(domain: Domain) -> None:
    cluster = second_round(domain)
    ours, theirs = (
        cluster.item(name) for name in of_candidate(2, "write-candidate-0", "write-incumbent-0")
    )
    assert (ours.inputs["model"], theirs.inputs["model"]) == (
        artifact("model-2"),
        artifact("student"),
    )
    assert ours.params.keys() == theirs.params.keys()
    assert {n for n in ours.params if ours.params[n] != theirs.params[n]} == {"generator"}
    assert ours.task == "generate"


def test_arms_have_the_same_real_text_and_the_same_seeds(domain: Domain) -> None:
    cluster = second_round(domain)
    arms = [item for item in cluster.asked if item.task == "pack_arm"]
    assert len(arms) == 4
    assert len({item.inputs["real"] for item in arms}) == 1
    assert len({str(item.params) for item in arms}) == 1
    plans = {
        arm: [item.params["plan"] for item in cluster.asked if item.params.get("arm") == arm]
        for arm in ("mix", "real", "candidate", "incumbent")
    }
    assert plans["mix"] == plans["real"] == plans["candidate"] == plans["incumbent"]
    (steps,) = {plan["steps"] for of_arm in plans.values() for plan in of_arm}
    assert steps == 40, "10,000 tokens, 79 sequences: four passes would be as many"
    shards = {i.inputs["shards"] for i in cluster.asked if i.params.get("arm") == "candidate"}
    assert shards == {cluster.completed[of_candidate(2, "arm-candidate")[0]].outputs["shards"]}


def test_where_the_real_text_is_small_all_arms_take_four_passes_over_it(domain: Domain) -> None:
    cluster = Cluster()
    cluster.real_bytes = 10_000.0
    cluster.walk(domain)
    cluster.walk(domain, 2)
    steps = {item.params["plan"]["steps"] for item in cluster.asked if item.task == "train_proxy"}
    assert steps == {10}


def test_little_is_scored_of_many_documents(domain: Domain) -> None:
    cluster = second_round(domain)
    told = {
        item.params["limits"]["max_document_bytes"]
        for item in cluster.asked
        if item.task in ("choose_proxy_text", "train_proxy")
    }
    (most,) = told
    text = cluster.item("r2/evaluate/proxies/text")
    assert most < domain.evaluation.max_document_bytes
    assert text.params["scored_bytes"] // most >= 32


def test_what_was_purged_reaches_no_arm(domain: Domain) -> None:
    cluster = Cluster(active_generators=WRITING, purged=frozenset({"docs"}))
    cluster.walk(domain)
    readers = ("choose_proxy_text", "generate", "pack_arm")
    told = [item.params["purged"] for item in cluster.asked if item.task in readers]
    assert told
    assert all(each == ["docs"] for each in told)


def test_who_writes_most_of_a_template_now_is_the_incumbent(domain: Domain) -> None:
    """Beside one who writes in full, a canary isn't the one to be compared with."""
    both = ActiveGenerators(
        {"complete_function": (artifact("student"),)}, canary=artifact("canary")
    )
    cluster = Cluster(active_generators=both)
    cluster.walk(domain)
    writing = cluster.item(of_candidate(1, "write-incumbent-0")[0])
    assert writing.inputs["model"] == artifact("student")
    alone = Cluster(active_generators=ActiveGenerators(canary=artifact("canary")))
    alone.walk(domain)
    writing = alone.item(of_candidate(1, "write-incumbent-0")[0])
    assert writing.inputs["model"] == artifact("canary")


def test_nobody_is_shown_the_gates_text(domain: Domain) -> None:
    """Who is given held-out text looks at `dev`, or only leaves out what resembles any of it."""
    cluster = second_round(domain)
    shown = {
        item.task
        for item in cluster.asked
        if "proxies" in item.id and any("holdout" in name for name in item.inputs)
    }
    assert shown == {"choose_proxy_text", "pack_arm"}


def test_a_candidate_of_which_no_text_can_be_used_trains_nobody(domain: Domain) -> None:
    cluster = Cluster()
    cluster.usable = 0
    cluster.walk(domain)
    assert [name for name in cluster.names() if "700" in name] == []
    assert cluster.asked[-1].params["teaching"] == {
        "wrote_nothing": "nothing that it wrote to 10 prompts passes the filters"
    }


TOO_LITTLE = (
    "generated text is 0.5% of the small students' text, and below 5% they show nothing but chance"
)


def test_too_little_generated_text_trains_nobody_and_holds_nobody_back(domain: Domain) -> None:
    cluster = Cluster(active_generators=WRITING)
    cluster.share = 0.005
    cluster.walk(domain)
    cluster.asked.clear()
    cluster.walk(domain, 2)
    assert [name for name in cluster.names() if "700" in name] == []
    assert cluster.names("arm") == of_candidate(2, "arm-candidate", "arm-incumbent")
    assert cluster.asked[-1].params["teaching"] == {"why_not": TOO_LITTLE}


def test_a_round_from_before_packings_told_their_bytes_has_its_control(domain: Domain) -> None:
    cluster = Cluster("HOLD", active_generators=WRITING)
    cluster.walk(domain)
    cluster.asked.clear()
    packed = WorkResult(
        {"shards": artifact("shards"), "tokenizer": artifact("tokenizer")},
        {"synthetic_documents": 40.0},
    )
    cluster.completed["r2/pack/0"] = packed
    cluster.completed["r2/filter/0"] = WorkResult({"kept": artifact("k")}, {})
    cluster.walk(domain, 2)
    assert "r2/evaluate/proxies/arm-mix" in cluster.names()


def test_without_text_to_score_on_none_are_trained(domain: Domain) -> None:
    cluster = Cluster()
    cluster.yardstick = 0
    cluster.walk(domain)
    assert "arm" not in " ".join(cluster.names())
    assert cluster.asked[-1].params["teaching"] == {
        "why_not": "there is no real text to score small students on"
    }


def test_a_generator_that_could_not_be_had_is_told(domain: Domain) -> None:
    server = Generator("server", url="http://box:1/v1", model="m")
    cluster = Cluster(named_generator=server)
    trained = ""
    while not isinstance(step := cluster.step(domain, 1, trained), CloseRound):
        if isinstance(step, TrainRound):
            trained = "model-1"
            continue
        for item in step.items:
            cluster.done(item)
            if "write-incumbent" in item.id:
                cluster.completed[item.id] = WorkResult({}, {}, {"without": "it doesn't answer"})
    assert cluster.asked[-1].params["teaching"] == {
        "why_not": "the generator in force couldn't be had: it doesn't answer"
    }
    assert cluster.item(of_candidate(1, "write-incumbent-0")[0]).params["server"] == {
        "name": "server",
        "url": "http://box:1/v1",
        "model": "m",
    }


@pytest.mark.parametrize("lacking", [students("candidate"), students("incumbent")])
def test_where_no_student_fits_a_device_the_gate_is_told_why(
    domain: Domain, lacking: list[str]
) -> None:
    cluster = Cluster(active_generators=WRITING)
    cluster.walk(domain)
    cluster.too_large = frozenset(lacking)
    cluster.asked.clear()
    closed = cluster.walk(domain, 2)
    last = cluster.asked[-1]
    assert closed.verdict is cluster.completed[last.id]
    assert last.params["teaching"] == {"why_not": f"small students couldn't be trained: {NO_ROOM}"}
    # Those of the control are in the verdict all the same.
    assert len([name for name in last.inputs if "proxies" in name]) == 4


def test_the_students_that_fit_are_compared_where_others_did_not(domain: Domain) -> None:
    cluster = Cluster(active_generators=WRITING)
    cluster.walk(domain)
    cluster.too_large = frozenset({"candidate-7002", "real-7001"})
    cluster.walk(domain, 2)
    last = cluster.asked[-1]
    assert last.params["teaching"] == {}
    assert len([name for name in last.inputs if "proxies" in name]) == 6


def test_whatever_is_killed_whenever_the_same_items_are_asked_for(domain: Domain) -> None:
    """Some of each step's items are done, in any order, and the leader asks anew."""
    whole = second_round(domain)
    expected = {item.id: item for item in whole.asked}
    for seed in range(5):
        chance = random.Random(seed)
        cluster = Cluster(active_generators=WRITING)
        cluster.walk(domain, 1)
        cluster.asked.clear()
        trained = ""
        while not isinstance(step := cluster.step(domain, 2, trained), CloseRound):
            if isinstance(step, TrainRound):
                trained = "model-2"
                continue
            assert isinstance(step, RunItems)
            for item in chance.sample(step.items, chance.randint(1, len(step.items))):
                cluster.done(item)
        assert {item.id: item for item in cluster.asked} == expected, f"seed {seed}"
        assert len(cluster.asked) == len(expected)


@pytest.mark.parametrize(("saved", "share"), [(0.1, 0.25), (-0.1, 0.1), (0.0, 0.2)])
def test_the_next_round_packs_by_what_the_controls_have_shown(saved: float, share: float) -> None:
    domain = domain_with(text=DOMAIN + "mix_ratio: {synthetic_share: 0.2}\n")
    cluster = Cluster("HOLD", active_generators=WRITING)
    cluster.bpb |= {"mix": 2.5 - saved, "real": 2.5}
    for number in (1, 2):
        cluster.walk(domain, number)
    now = view(cluster.completed, round=3, active_generators=WRITING)
    found = synthetic_share(now, domain)
    assert found.share == pytest.approx(share)
    cluster.walk(domain, 3)
    packing = cluster.item("r3/pack/0")
    assert packing.params["synthetic_share"] == found.share
    assert packing.params["share_reason"] == found.reason
    assert cluster.item("r2/pack/0").params["synthetic_share"] == 0.2


def test_another_candidate_of_the_round_has_students_of_its_own(domain: Domain) -> None:
    cluster = second_round(domain)
    before = set(cluster.completed)
    for _ in range(30):
        step = cluster.step(domain, 2, "other")
        if isinstance(step, CloseRound):
            break
        assert isinstance(step, RunItems)
        for item in step.items:
            cluster.done(item)
    new = set(cluster.completed) - before
    assert new
    assert all(name.endswith("/other000") for name in new)
