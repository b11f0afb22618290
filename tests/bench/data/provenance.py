"""How soon `data why` answers among a million samples: jupiterctl as people call it, the daemon
that holds them, and one that must ask it.

python -m tests.bench.data.provenance [--samples N] [--trials N]
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.daemon.app.local_sockets import answering_front_ends
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.queries.cluster.cluster_trace import trace_of
from jupiterd.daemon.queries.cluster.provenance_document import provenance_document
from jupiterd.ids import ArtifactId
from jupiterd.workers.samples.sample_file import SampleWriter
from jupiterd.workers.tokens.shards import ShardWriter
from tests.bench.figure import Figure, Goal, line, machine
from tests.support.cluster.building import CYCLE, NODES, started
from tests.support.daemon.two_nodes import found, link, serving, take_for_alive, whole_ledger

SEED = 11
TOKENS = 300
"""Of each document; what they are plays no part."""

LIMIT_MS = 100
MAX_REMOTE = 100
"""Of each kind; a member that asks more than 200 times a second for long is refused."""

MAX_PROGRAMS = 100
"""Of each kind."""

JUPITERCTL = Path(sys.executable).with_name("jupiterctl")

BARE = "a program that prints a word"

SYNTHETIC_EVERY = 4

Ask = Callable[[str], Awaitable[None]]


def samples(count: int) -> Iterator[Sample]:
    """Yield samples of about 1 KiB of text; every fourth was made from the one before it."""
    choice = random.Random(SEED)
    before: Sample | None = None
    for number in range(count):
        words = choice.choices(_WORDS, k=150)
        sample = _real(f"{number} {' '.join(words)}")
        if before is not None and number % SYNTHETIC_EVERY == 0:
            sample = replace(sample, kind="synthetic", depth=1, parents=(before.id,))
        before = sample if sample.kind == "real" else before
        yield sample


_WORDS = [text_hash(str(number))[: 3 + number % 9] for number in range(5000)]


def _real(text: str) -> Sample:
    return Sample(
        id=text_hash(text), text=text, kind="real", depth=0, parents=(), cluster_id="c",
        source_uri="https://example.org/page", revision="1", license="MIT", collector="web@1",
        fetched_at="2026-01-02T03:04:05Z", source="pages", filters="filter@1",
        filter_scores={"letters": 0.7, "repeated": 0.01},
    )  # fmt: skip


async def prepare(node: Node, other: Node, folder: Path, count: int) -> list[str]:
    """Let one of two members have a round of so many samples; return the ids of some."""
    ids: list[str] = []
    shards = ShardWriter(folder / "shards", 300)
    with SampleWriter(folder / "kept") as kept, SampleWriter(folder / "train") as train:
        for sample in samples(count):
            kept.add(sample)
            if sample.kind == "real":
                train.add(sample)
            ids.append(sample.id)
    for start in range(0, count, 1000):
        part = ids[start : start + 1000]
        shards.append([7] * (TOKENS * len(part)), [(each, TOKENS) for each in part])
    shards.finish(seq_len=256, tokenizer_hash="", documents=count, size_bytes=1)
    made = {
        name: node.artifact_cache.store.ingest(folder / name)
        for name in ("kept", "train", "shards")
    }
    await found(
        node,
        other,
        facts=(
            started(),
            *(
                WorkCompleted(CYCLE, 1, phase, f"r1/{phase}/0", NODES[0], {name: made[name]})
                for phase, name in (("collect", "train"), ("filter", "kept"), ("pack", "shards"))
            ),
            WorkCompleted(CYCLE, 2, "gate", "r2/gate/0", NODES[0], {"x": ArtifactId("0" * 64)}),
        ),
    )
    await other.replica.move_to(whole_ledger(node.replica))
    await link(other, node)
    take_for_alive(other, node)
    return random.Random(SEED).sample(ids, min(count, 10_000))


async def timed(ask: Ask, questions: list[str]) -> list[float]:
    """Return how many milliseconds each answer took."""
    values: list[float] = []
    for question in questions:
        began_s = time.perf_counter()
        await ask(question)
        values.append(1000 * (time.perf_counter() - began_s))
    return values


async def measure(count: int, trials: int) -> dict[str, list[float]]:
    """Return the milliseconds of each kind of question."""
    with tempfile.TemporaryDirectory(prefix="jb-", dir="/tmp") as name:
        folder = Path(name)
        async with serving(folder, "one") as node, serving(folder, "other") as other:
            ids = await prepare(node, other, folder / "made", count)
            choice = random.Random(SEED)
            tokens = [f"python:{choice.randrange(TOKENS * count)}" for _ in range(trials)]
            few = min(trials, MAX_REMOTE)
            programs = min(trials, MAX_PROGRAMS)
            async with asyncio.TaskGroup() as group, answering_front_ends(node, group):
                return {
                    **await by_programs(
                        folder / "one", choice.sample(ids, programs), tokens[:programs]
                    ),
                    "the daemon's part of SAMPLE": await timed(
                        in_daemon(node), choice.sample(ids, trials)
                    ),
                    "the daemon's part of SHARDS:OFFSET": await timed(in_daemon(node), tokens),
                    "the daemon's part of SAMPLE, where a member must be asked": await timed(
                        in_daemon(other), choice.sample(ids, few)
                    ),
                    "the daemon's part of SHARDS:OFFSET, where a member must be asked": await timed(
                        in_daemon(other), tokens[:few]
                    ),
                }


def in_daemon(node: Node) -> Ask:
    """Ask a node's own code."""

    async def ask(question: str) -> None:
        why = await provenance_document(
            node.replica.state, trace_of(node.observers.sources), question
        )
        assert why["why"]["sample"]["license"] == "MIT"

    return ask


async def by_programs(state_dir: Path, ids: list[str], tokens: list[str]) -> dict[str, list[float]]:
    """Return how long jupiterctl takes as people call it, from its start to its exit.

    A program that prints a word shows how much of that is the interpreter's. They run in turns, so
    that what else the machine does falls on all of them.
    """
    why = (str(JUPITERCTL), "--state-dir", str(state_dir), "data", "why")
    values: dict[str, list[float]] = defaultdict(list)
    for sample, token in zip(ids, tokens, strict=True):
        values["jupiterctl data why SAMPLE, all of it"] += await timed(by_program(why), [sample])
        values["jupiterctl data why SHARDS:OFFSET, all of it"] += await timed(
            by_program(why), [token]
        )
        values[BARE] += await timed(by_program((sys.executable, "-c")), ["print('MIT')"])
    return values


def by_program(command: tuple[str, ...]) -> Ask:
    """Ask by a program of its own, its last argument being the question."""

    async def ask(question: str) -> None:
        process = await asyncio.create_subprocess_exec(
            *command, question, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0
        assert b"MIT" in out, out

    return ask


async def nothing() -> float:
    """Stand for a trial: these figures are taken together."""
    return 0.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--trials", type=int, default=500)
    chosen = parser.parse_args()
    print(machine())
    for name, values in asyncio.run(measure(chosen.samples, chosen.trials)).items():
        goals = () if name == BARE else (Goal(0.95, LIMIT_MS),)
        figure = Figure(f"{name}, {chosen.samples:,} samples", "ms", goals, nothing)
        print(line(figure, values), flush=True)


if __name__ == "__main__":
    main()
