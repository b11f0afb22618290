"""Two groups of islands that were apart, and took outer steps each: one begins anew when they meet.

Two nodes by hand: ledgers, artifacts and orders travel over real TLS; the workers say what the test
wants.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    Fact,
    ManifestFrozen,
    OuterStepTaken,
    TrainingStarted,
)
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.planning.engines import TORCH
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.gangs.gang_supervisor import GangSupervisor
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.planning.training_spec import training_of
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import (
    CheckpointStored,
    Finished,
)
from jupiterd.errors import StateNotFetchedError
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.protocol.frames import GangJoined
from jupiterd.protocol.training_values import TrainingProgress
from tests.support.cluster.building import CYCLE, data_asked, outer_step, training
from tests.support.daemon.by_hand import Workers
from tests.support.daemon.two_nodes import TIMEOUT_S, serving, unite, until
from tests.unit.daemon.cycles.test_run_driver import MADE
from tests.unit.daemon.islands.test_island_coordinator import BATCH, PRESET, SETTINGS

OURS, THEIRS = CycleId("1" * 16), CycleId("2" * 16)
MACHINE = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30, engines=(TORCH,))


def made(node: Node, name: str) -> ArtifactId:
    """Put something into a node's store; here nobody looks into it."""
    folder = node.state_dir.spool / name
    folder.mkdir()
    (folder / "content").write_text(name)
    artifact = node.artifact_cache.store.ingest(folder)
    node.artifact_cache.known_whole.add(artifact)
    return artifact


def island(cycle: CycleId, node: Node) -> TrainingStarted:
    run = replace(training(), model_yaml=PRESET, settings=SETTINGS)
    return replace(
        run, cycle=cycle, name=f"letters/{cycle[0]}", parent=CYCLE, engine=TORCH,
        nodes=(node.identity.node_id,),
    )  # fmt: skip


def step_after(before: OuterStepTaken | None, *who: CycleId) -> OuterStepTaken:
    number = 0 if before is None else before.number + 1
    step = outer_step(number, "" if before is None else fact_hash(before), steps=10)
    batches = dict.fromkeys(who, BATCH // len(who))
    return replace(step, first_step=10 * number, batches=batches, total_tokens=100 * number)


def saved(cycle: CycleId, artifact: ArtifactId, step: int, parent: str = "") -> CheckpointCommitted:
    return CheckpointCommitted(
        cycle, 1, parent, artifact, 1, step, 10 * step, step, 2.5, is_final=False
    )


@asynccontextmanager
async def apart(folder: Path) -> AsyncGenerator[tuple[Node, Node, ArtifactId, ArtifactId]]:
    """Two nodes that have met again, and the newest checkpoint of each one's island."""
    async with serving(folder, "ours") as ours, serving(folder, "theirs") as theirs:
        await unite(ours, theirs)
        nodes = frozenset((ours.identity.node_id, theirs.identity.node_id))
        for node in (ours, theirs):
            node.artifact_cache._alive = lambda: nodes
        data = {"tokenizer": made(ours, "tokenizer"), "shards": made(ours, "shards")}
        begun = step_after(None, OURS, THEIRS)
        run: list[Fact] = [
            replace(data_asked(), node=""),
            replace(MADE, outputs=data),
            ManifestFrozen(CYCLE, 1, "", data["tokenizer"], (data["shards"],), 99, 9_999),
            replace(training(), model_yaml=PRESET, settings=SETTINGS),
            island(OURS, ours),
            island(THEIRS, theirs),
            begun,
        ]
        await ours.replica.append(1, run)
        theirs.anti_entropy.request(ours.identity.node_id)
        await until(lambda: CYCLE in theirs.replica.state.cycles)
        # Now they are apart: each goes on alone, and theirs takes fewer outer steps.
        second = step_after(begun, OURS)
        good = made(ours, "good")
        await ours.replica.append(1, [second, step_after(second, OURS), saved(OURS, good, 24)])
        early, lost = made(theirs, "early"), made(theirs, "lost")
        await theirs.replica.append(2, [saved(THEIRS, early, 5), step_after(begun, THEIRS)])
        await theirs.replica.append(2, [saved(THEIRS, lost, 19, early)])
        theirs.anti_entropy.request(ours.identity.node_id)
        await until(lambda: ours.replica.ledger.head() == theirs.replica.ledger.head())
        yield ours, theirs, good, lost


def leads(node: Node, *others: Node) -> TermServices:
    """The term of a node that knows what the others are."""
    everybody = frozenset(each.identity.node_id for each in (node, *others))
    leading = node._begin_term(3)
    leading.term.alive = leading.machines.alive = leading.machines.answering = lambda: everybody
    leading.machines.hardware_of = lambda _: MACHINE
    return leading


async def test_the_island_whose_outer_steps_do_not_count_begins_anew_from_one_whose_do(
    tmp_path: Path,
) -> None:
    async with apart(tmp_path) as (ours, theirs, good, lost), asyncio.timeout(TIMEOUT_S):
        workers = Workers()
        theirs.order_executor._workers = workers
        leading = leads(ours, theirs)
        leading.board.begin(THEIRS, 1, Phase.TRAIN, now_s())
        found = training_of(leading.term.state, CYCLE)
        supervisor = GangSupervisor(
            leading, TrainedRound(THEIRS, 1, found.shape, found.plan, CYCLE)
        )
        training = asyncio.ensure_future(supervisor.train(found.data))
        await until(lambda: len(workers.running) == 1)
        (first,) = workers.running
        gone_on = StateNotFetchedError("the other islands went on without this one")
        workers.say(first, GangJoined("cpu", ""), gone_on)
        await until(lambda: bool(workers.running - {first}))
        (second,) = workers.running
        epochs = leading.term.cycle(THEIRS).attempts_opened.values()
        assert [(each.from_checkpoint, each.from_step) for each in epochs] == [
            (lost, 19),
            (good, 24),
        ]
        assert theirs.artifact_cache.store.holds(good), "it has been brought there"
        end = made(theirs, "end")
        last = CheckpointStored(end, TrainingProgress(found.plan.steps, 10, 10, 2.0))
        workers.say(second, GangJoined("cpu", ""), last, Finished(WorkResult({})))
        await training
        line = leading.term.cycle(THEIRS).canonical_branch()
        assert [each.artifact for each in line if isinstance(each, CheckpointCommitted)][-3:] == [
            lost, good, end,
        ]  # fmt: skip
