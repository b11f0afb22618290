"""How often small students of the same text are told apart, and whether nonsense is noticed.

Owns a pool of real small students (`workers.proxies.student`) and drawing arms from it. The text is
Python's own library, or pages of a folder. Scores are kept, so that the pool is trained once:

    make bench-cycle ONLY=students KEEP=FOLDER [PAGES=FOLDER]
"""

import json
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.cycle.gate.proxy import Arm, ArmComparison, ProxyRun, compare
from jupiterd.cycle.gate.record import proxy_lines, read_proxy_lines
from jupiterd.cycle.generation.proxies import Proxies, proxies_of
from jupiterd.cycle.training.plan import TrainPlan, parse_model
from jupiterd.workers.data.pack.pack_shards import PackParams, pack
from jupiterd.workers.proxies import student
from jupiterd.workers.proxies.arm import ARM_FILE
from jupiterd.workers.samples.sample_file import SampleWriter
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer
from tests.support.workers.tiny_run import TaskAlone

SEED = 12
SHAPE = Path(__file__).resolve().parents[3] / "config" / "models" / "1m.yaml"
DOCUMENT_CHARS = 4000
SCORED_DOCUMENTS = 32
LIMITS = {"min_document_bytes": 256, "max_document_bytes": 2048, "max_cluster_documents": 20}
NONSENSE_SHARES = (0.05, 0.1, 0.25, 0.5)
NONSENSE_STUDENTS = 8
STUDENTS = 24
GOAL = 0.05
LITTLE_CHARS = 8_000
"""Of a second pool: so little that four passes over it are fewer steps than the size's."""
PIECES = 20
LITTLE = "little"
"""Its folder in that of the first."""


def read_documents(pages: Path | None) -> list[str]:
    """Return texts of a few thousand characters: pages of a folder, or Python's own library."""
    folder = pages or Path(sysconfig.get_path("stdlib"))
    files = sorted(folder.rglob("*.*") if pages else folder.glob("*.py"))
    texts = (path.read_text("utf-8", "replace") for path in files if path.is_file())
    found = [
        text[start : start + DOCUMENT_CHARS]
        for text in texts
        for start in range(0, max(1, len(text) - DOCUMENT_CHARS // 2), DOCUMENT_CHARS)
    ]
    Random(SEED).shuffle(found)
    return found


def _pieces(texts: Sequence[str], chars: int) -> list[str]:
    return [text[start : start + chars] for text in texts for start in range(0, len(text), chars)]


def nonsense(chance: Random, like: str) -> str:
    """Return words of random letters with the spacing of a real text."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return "".join(chance.choice(letters) if each.isalnum() else each for each in like)


class Pool:
    """Students of one text: trained once, their scores kept in a folder."""

    def __init__(self, folder: Path, documents: Sequence[str], chars: int = 0) -> None:
        """Make or open it; `chars` of text are learned, as many as the steps take unless told."""
        self._folder, self._chars = folder, chars
        self._scored = documents[:SCORED_DOCUMENTS]
        self._learned = documents[SCORED_DOCUMENTS:]
        if chars:  # in pieces, so that a small share of them is one
            self._learned = _pieces(self._learned, chars // PIECES)
        folder.mkdir(parents=True, exist_ok=True)
        self._tokenizer = folder / "tokenizer"
        shape = parse_model(SHAPE.read_text(encoding="utf-8"))
        if not self._tokenizer.exists():
            save_tokenizer(train_tokenizer(self._learned, shape.vocab_size), self._tokenizer)
        self.proxies: Proxies = proxies_of(shape, SEED)
        self._yardstick = _write(folder / "yardstick", self._scored)

    def students(self, name: str, share: float, count: int) -> list[ProxyRun]:
        """Return so many students, of different seeds, of text of which a share is nonsense."""
        kept = self._folder / f"{name}.jsonl"
        runs = read_proxy_lines([kept.read_text(encoding="utf-8")]) if kept.exists() else []
        shards = self._shards(name, share)
        for seed in range(len(runs) + 1, count + 1):
            began_s = time.perf_counter()
            runs.append(self._trained(name, shards, seed))
            kept.write_text(proxy_lines(runs), encoding="utf-8")
            took_s = time.perf_counter() - began_s
            print(
                f"  {name} {seed}: {runs[-1].bpb:.4f} bits per byte in {took_s:.1f} s", flush=True
            )
        spread = self.proxies.spread_after(self._plan(1))  # whatever was taken when they trained
        return [replace(run, spread_bpb=spread) for run in runs[:count]]

    def _plan(self, seed: int) -> TrainPlan:
        """Return how a student is trained: of little text, what all arms have alike decides."""
        alike = ShardSet(self._folder / "arm-alike" / "shards", self.proxies.shape.seq_len)
        return self.proxies.plan(seed, alike.index.tokens if self._chars else 0)

    def _shards(self, name: str, share: float) -> Path:
        chance = Random(SEED)
        wanted_chars = self._chars or self.proxies.tokens * 4
        real, bad, left = [], [], wanted_chars
        for text in self._learned:
            is_bad = sum(map(len, bad)) < share * (wanted_chars - left + len(text))
            (bad if is_bad else real).append(nonsense(chance, text) if is_bad else text)
            left -= len(text)
            if left <= 0:
                break
        out = self._folder / f"arm-{name}"
        if not (out / "shards" / ARM_FILE).exists():
            texts = _write(out / "texts", [*real, *bad])
            params = PackParams(0, self.proxies.shape.seq_len, 0.0, SEED)
            pack([texts], self._tokenizer, out, params)
            told = {"real_bytes": sum(map(len, real)), "synthetic_bytes": sum(map(len, bad))}
            (out / "shards" / ARM_FILE).write_text(json.dumps(told), encoding="utf-8")
        return out / "shards"

    def _trained(self, name: str, shards: Path, seed: int) -> ProxyRun:
        plan = self._plan(seed)
        params = {
            "arm": name,
            "seed": seed,
            "shape": self.proxies.shape.to_plain(),
            "plan": plan.to_plain(),
            "round": 1,
            "spread_bpb": self.proxies.spread_after(plan),
            "limits": LIMITS,
        }
        inputs = {
            "shards": str(shards),
            "tokenizer": str(self._tokenizer),
            "yardstick": str(self._yardstick),
        }
        out = self._folder / f"student-{name}-{seed}"
        end = student.run(TaskAlone("train_proxy", params, inputs, out))
        return ProxyRun(**dict(end.summary))  # pyright: ignore[reportArgumentType]


def _write(folder: Path, texts: Iterable[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with SampleWriter(folder) as writer:
        for number, text in enumerate(texts):
            writer.add(
                Sample(
                    id=text_hash(text),
                    text=text,
                    kind="real",
                    depth=0,
                    parents=(),
                    cluster_id=f"c{number}",
                    source_uri=f"file:{number}",
                    revision="",
                    license="private",
                    collector="bench@1",
                    fetched_at="",
                )
            )
    return folder


@dataclass(frozen=True)
class Drawn:
    """What G3 says of arms that were drawn."""

    worse: float
    """Share of the pairs in which ours is found to be worse: a candidate is held back."""
    better: float
    detectable_bpb: float
    """The median of what a pair of arms would notice with a chance of 80 %."""


def draw(ours: Sequence[ProxyRun], theirs: Sequence[ProxyRun], seeds: int, pairs: int) -> Drawn:
    """Return what comes of so many pairs of arms of `seeds` students each.

    Where both are of one pool, no student is in both arms.
    """
    chance = Random(SEED)
    found = [_compared(*_arms(chance, ours, theirs, seeds)) for _ in range(pairs)]
    return Drawn(
        sum(each.is_worse for each in found) / pairs,
        sum(each.is_better for each in found) / pairs,
        statistics.median(each.detectable_bpb for each in found),
    )


def _arms(
    chance: Random, ours: Sequence[ProxyRun], theirs: Sequence[ProxyRun], seeds: int
) -> tuple[Sequence[ProxyRun], Sequence[ProxyRun]]:
    if ours is theirs:
        both = chance.sample(ours, 2 * seeds)
        return both[:seeds], both[seeds:]
    return chance.sample(ours, seeds), chance.sample(theirs, seeds)


def _compared(ours: Iterable[ProxyRun], theirs: Iterable[ProxyRun]) -> ArmComparison:
    runs = [
        replace(run, arm=arm, seed=seed)
        for arm, drawn in ((Arm.CANDIDATE, ours), (Arm.GENERATOR, theirs))
        for seed, run in enumerate(drawn)
    ]
    found = compare(runs, Arm.CANDIDATE, Arm.GENERATOR)
    assert found is not None
    return found


def print_students(pairs: int, keep: Path | None = None, pages: Path | None = None) -> None:
    """Train what isn't kept, draw pairs of arms, and print how often they are told apart."""
    with tempfile.TemporaryDirectory(prefix="jupiter-bench-") as scratch:
        folder, documents, told_of = keep or Path(scratch), read_documents(pages), pages or "Python"
        _print_pool(Pool(folder, documents), pairs, str(told_of))
        little = Pool(folder / LITTLE, documents, LITTLE_CHARS)
        _print_pool(little, pairs, f"{LITTLE_CHARS:,} characters of {told_of}")


def _print_pool(pool: Pool, pairs: int, text: str) -> None:
    seeds = len(pool.proxies.seeds)
    alike = pool.students("alike", 0.0, STUDENTS)
    spread = statistics.stdev(run.bpb for run in alike)
    print(
        f"{STUDENTS} small students ({pool.proxies.shape.size}) of {text}, "
        f"{alike[0].tokens:,} tokens each: {statistics.fmean(r.bpb for r in alike):.4f} bits "
        f"per byte, spread {spread:.4f} (taken for {alike[0].spread_bpb:.3f}), "
        f"{seeds} seeds an arm"
    )
    drawn = draw(alike, alike, seeds, pairs)
    told = "reached" if drawn.worse <= GOAL else "MISSED"
    print(
        f"  the same text, {pairs:,} pairs of arms: {drawn.worse:.1%} held back  "
        f"[<= {GOAL:.0%} {told}], {drawn.better:.1%} said to help; "
        f"{drawn.detectable_bpb:.3f} bits per byte would be noticed"
    )
    for share in NONSENSE_SHARES:
        bad = pool.students(f"nonsense-{share:g}", share, NONSENSE_STUDENTS)
        drawn = draw(bad, alike, seeds, pairs)
        harm = statistics.fmean(r.bpb for r in bad) - statistics.fmean(r.bpb for r in alike)
        print(f"  {share:.0%} nonsense ({harm:+.4f}): {drawn.worse:.1%} held back")
