"""The items by which a judge is heard: when they are due, and what the gate is told."""

import random

import pytest

from jupiterd.cycle.base.work_item import WorkItem, WorkResult
from jupiterd.cycle.domain.domain import Domain
from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.phases.counting_verdict import is_shown_the_vault, verdict_item
from jupiterd.cycle.phases.steps import CloseRound, RunItems, TrainRound
from tests.unit.cycle.phases.test_proxy_items import Cluster, domain_with
from tests.unit.cycle.test_phases import artifact, view

SERVER = Generator("oak", url="http://box:1/v1", model="oak", node="n1")
FOLDER = Generator("elm", artifact=artifact("elm"))
STUDENT = artifact("student")


class Tied(Cluster):
    """A cluster whose first verdict on any candidate is a tie; the judge's is what a test says."""

    def __init__(self, with_judge: str = "HOLD", **changes: object) -> None:
        super().__init__("HOLD", **({"judge": SERVER, "best_student": STUDENT} | changes))
        self.with_judge = with_judge
        self.planted = self.pairs = 10.0
        self.trouble = ""
        self.is_tied = True

    def done(self, item: WorkItem) -> None:
        results = {"write_pairs": self._written, "ask_judge": self._asked, "gate": self._judged}
        if item.task not in results:
            super().done(item)
            return
        self.asked.append(item)
        self.completed[item.id] = results[item.task](item)

    def _written(self, item: WorkItem) -> WorkResult:
        counts = {"planted_pairs": self.planted, "answer_pairs": self.pairs}
        return WorkResult({"pairs": artifact(f"{item.id}-pairs")}, counts)

    def _asked(self, item: WorkItem) -> WorkResult:
        if self.trouble:
            return WorkResult({}, {}, {"without": self.trouble})
        return WorkResult({"pairs": artifact(f"{item.id}-said")})

    def _judged(self, item: WorkItem) -> WorkResult:
        is_first = "/gate/0/" in item.id
        said = {"verdict": "HOLD" if is_first else self.with_judge, "tied": self.is_tied}
        return WorkResult({"verdict": artifact(item.id)}, {}, said)

    def of_gate(self) -> list[str]:
        return [item.id.removeprefix("r1/gate/") for item in self.asked if "/gate/" in item.id]


@pytest.fixture
def domain() -> Domain:
    return domain_with("proxies: off")


def test_where_the_scores_are_tied_students_write_the_judge_is_asked_and_the_gate_judges_again(
    domain: Domain,
) -> None:
    cluster = Tied()
    closed = cluster.walk(domain)
    assert cluster.of_gate() == [
        "0/model-10",
        "judge/write/model-10",
        "judge/ask/model-10",
        "2/model-10",
    ]
    first, writing, asking, last = cluster.asked[-4:]
    assert closed.verdict is cluster.completed[last.id]
    assert (writing.inputs["model"], writing.inputs["incumbent"]) == (artifact("model-1"), STUDENT)
    assert asking.inputs == {"pairs": cluster.completed[writing.id].outputs["pairs"]}
    assert asking.params["server"] == SERVER.to_plain()
    assert last.inputs["judge"] == cluster.completed[asking.id].outputs["pairs"]
    assert last.params["scores"] == last.inputs
    assert first.params["judge"] == last.params["judge"] == {"name": "oak", "id": SERVER.id}
    assert first.params["look"] == last.params["look"]
    assert "judge" not in first.inputs


def test_a_judge_that_is_a_folder_is_an_input(domain: Domain) -> None:
    cluster = Tied(judge=FOLDER)
    cluster.walk(domain)
    asking = next(item for item in cluster.asked if item.task == "ask_judge")
    assert asking.inputs["model"] == artifact("elm")
    assert "server" not in asking.params


@pytest.mark.parametrize("changes", [{"judge": None}, {"best_student": ""}])
def test_without_a_judge_or_a_last_student_nobody_is_asked(
    domain: Domain, changes: dict[str, object]
) -> None:
    cluster = Tied(**changes)
    cluster.walk(domain)
    assert cluster.of_gate() == ["0/model-10"]
    told = cluster.asked[-1].params.get("judge", {})
    expected = "" if "judge" in changes else "there is no last student to compare its answers with"
    assert told.get("why_not", "") == expected


@pytest.mark.parametrize("whose", ["student", "model-1"])
def test_a_student_is_no_judge_of_itself(domain: Domain, whose: str) -> None:
    cluster = Tied(judge=Generator("own", artifact=artifact(whose)))
    cluster.walk(domain)
    assert cluster.of_gate() == ["0/model-10"]
    told = cluster.asked[-1].params["judge"]["why_not"]
    assert told == "the judge is one of the two students"


def test_where_the_statistics_decide_nobody_is_asked(domain: Domain) -> None:
    cluster = Tied()
    cluster.is_tied = False
    cluster.walk(domain)
    assert cluster.of_gate() == ["0/model-10"]


def test_a_judge_that_could_not_be_had_is_told_and_the_round_goes_on(domain: Domain) -> None:
    cluster = Tied()
    cluster.trouble = "it doesn't answer"
    closed = cluster.walk(domain)
    last = cluster.asked[-1]
    assert closed.verdict is cluster.completed[last.id]
    assert last.params["judge"]["why_not"] == "the judge couldn't be had: it doesn't answer"
    assert "judge" not in last.inputs


@pytest.mark.parametrize(
    ("planted", "pairs", "told"),
    [
        (0.0, 0.0, "there is too little development text to make pairs of"),
        (9.0, 0.0, "what the two students write is too short to be compared, or the same"),
    ],
)
def test_where_there_is_nothing_to_compare_the_judge_is_not_asked(
    domain: Domain, planted: float, pairs: float, told: str
) -> None:
    cluster = Tied()
    cluster.planted, cluster.pairs = planted, pairs
    cluster.walk(domain)
    assert cluster.of_gate() == ["0/model-10", "judge/write/model-10", "2/model-10"]
    assert cluster.asked[-1].params["judge"]["why_not"] == told


def test_one_whom_a_judge_would_promote_still_has_to_show_that_its_text_teaches() -> None:
    cluster = Tied("PROMOTE")
    closed = cluster.walk(domain_with())
    last = cluster.asked[-1]
    assert last.id == "r1/gate/1/model-10"
    assert closed.verdict is cluster.completed[last.id]
    assert cluster.names()
    assert last.inputs["judge"] == cluster.completed["r1/gate/judge/ask/model-10"].outputs["pairs"]
    assert len([name for name in last.inputs if "proxies" in name]) == 4


def test_who_won_by_a_judge_counts_among_those_after_whom_the_vault_is_opened(
    domain: Domain,
) -> None:
    completed = {"r5/collect/split": WorkResult({}, {"vault_documents": 3})}
    won = WorkResult({}, {}, {"verdict": "PROMOTE"})
    tied = WorkResult({}, {}, {"verdict": "HOLD", "tied": True})
    for number in range(1, 6):
        completed[f"r{number}/gate/0/model-{number}0"] = tied
        assert not is_shown_the_vault(
            view(completed, round=number, candidate=artifact(f"model-{number}")), domain
        )
        completed[f"r{number}/gate/2/model-{number}0"] = won
    assert is_shown_the_vault(view(completed, round=5, candidate=artifact("model-5")), domain)


def test_the_verdict_that_was_told_most_is_the_one_that_counts() -> None:
    names = {f"r1/gate/{n}/k": n for n in (0, 1, 2)}
    assert verdict_item(1, "k", names) == "r1/gate/1/k"
    assert verdict_item(1, "k", names.keys() - {"r1/gate/1/k"}) == "r1/gate/2/k"
    assert verdict_item(1, "k", {"r1/gate/0/k"}) == "r1/gate/0/k"


def test_the_judge_sees_no_text_of_the_gates(domain: Domain) -> None:
    """The worker that is given held-out text takes its development part alone."""
    cluster = Tied()
    cluster.walk(domain)
    asking = next(item for item in cluster.asked if item.task == "ask_judge")
    assert not any("holdout" in name for name in asking.inputs)


def test_whatever_is_killed_whenever_the_same_items_are_asked_for() -> None:
    """Some of each step's items are done, in any order, and the leader asks anew."""
    domain = domain_with()
    whole = Tied("PROMOTE")
    whole.walk(domain)
    expected = {item.id: item for item in whole.asked}
    for seed in range(5):
        chance = random.Random(seed)
        cluster = Tied("PROMOTE")
        trained = ""
        while not isinstance(step := cluster.step(domain, 1, trained), CloseRound):
            if isinstance(step, TrainRound):
                trained = "model-1"
                continue
            assert isinstance(step, RunItems)
            for item in chance.sample(step.items, chance.randint(1, len(step.items))):
                cluster.done(item)
        assert {item.id: item for item in cluster.asked} == expected, f"seed {seed}"
        assert len(cluster.asked) == len(expected)
