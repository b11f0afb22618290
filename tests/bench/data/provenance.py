"""How soon `data why` answers among a million samples: in the daemon, and through jupiterctl.

python -m tests.bench.data.provenance [--samples N] [--trials N]
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

from jupiterd.cluster.facts import WorkCompleted
from jupiterd.cycle.lineage import Sample, text_hash
from jupiterd.daemon.control_service import serve_control
from jupiterd.daemon.node import Node
from jupiterd.daemon.why_document import why_document
from jupiterd.ids import ArtifactId
from jupiterd.workers.data.sample_file import SampleWriter
from jupiterd.workers.data.shards import ShardWriter
from tests.bench.figure import Figure, Goal, line, machine
from tests.unit.cluster.building import CYCLE, NODES, started
from tests.unit.daemon.two_nodes import found, serving

SEED = 11
TOKENS = 300
"""Of each document; what they are plays no part."""

LIMIT_MS = 100
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


async def prepare(node: Node, folder: Path, count: int) -> list[str]:
    """Let the node have a round of so many samples; return the ids of some."""
    ids: list[str] = []
    shards = ShardWriter(folder / "shards")
    with SampleWriter(folder / "kept") as kept, SampleWriter(folder / "train") as train:
        for sample in samples(count):
            kept.add(sample)
            if sample.kind == "real":
                train.add(sample)
            ids.append(sample.id)
    for start in range(0, count, 1000):
        part = ids[start : start + 1000]
        shards.append([7] * (TOKENS * len(part)), [(each, TOKENS) for each in part])
    shards.finish(seq_len=256, vocab_size=300, tokenizer_hash="", documents=count, size_bytes=1)
    made = {name: node.library.store.ingest(folder / name) for name in ("kept", "train", "shards")}
    await found(
        node,
        facts=(
            started(),
            *(
                WorkCompleted(CYCLE, 1, phase, f"r1/{phase}/0", NODES[0], {name: made[name]})
                for phase, name in (("collect", "train"), ("filter", "kept"), ("pack", "shards"))
            ),
            WorkCompleted(CYCLE, 2, "gate", "r2/gate/0", NODES[0], {"x": ArtifactId("0" * 64)}),
        ),
    )
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
        async with serving(folder, "one") as node:
            ids = await prepare(node, folder / "made", count)
            choice = random.Random(SEED)
            tokens = [f"python:{choice.randrange(TOKENS * count)}" for _ in range(trials)]

            async def in_daemon(question: str) -> None:
                assert (await why_document(node, question))["why"]["sample"]["license"] == "MIT"

            async def by_command(question: str) -> None:
                command = ("-m", "jupiterd.ctl.main", "--state-dir", str(folder / "one"))
                process = await asyncio.create_subprocess_exec(
                    sys.executable, *command, "data", "why", question,
                    stdout=asyncio.subprocess.PIPE,
                )  # fmt: skip
                out, _ = await process.communicate()
                assert b"MIT" in out, out

            server = await serve_control(node)
            try:
                return {
                    "data why SAMPLE": await timed(in_daemon, choice.sample(ids, trials)),
                    "data why SHARDS:OFFSET": await timed(in_daemon, tokens),
                    "jupiterctl data why SAMPLE, the program's start and end with it": await timed(
                        by_command, choice.sample(ids, max(1, trials // 10))
                    ),
                }
            finally:
                await server.stop(0)


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
        goals = (Goal(0.95, LIMIT_MS),) if name.startswith("data") else ()
        figure = Figure(f"{name}, {chosen.samples:,} samples", "ms", goals, nothing)
        print(line(figure, values), flush=True)


if __name__ == "__main__":
    main()
