"""Whether the cycle's rules keep models from collapsing that learn from what models have written.

Owns a cycle in small: byte-counting students on Python's own library. The rules are those that are
shipped: which synthetic text is taken (`mixing`), how much there may be (`synthetic_share`, over a
control on halves of the real text), the gate, and who writes next (`promotion`). Without them each
round learns from what the round before has written, as nobody should.
"""

import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

from blake3 import blake3

from jupiterd.cycle.data.mixing import Offered, share_cap, take_synthetic
from jupiterd.cycle.data.split import DEV, GATE
from jupiterd.cycle.gate.case import Findings, GateSettings
from jupiterd.cycle.gate.proxy import Arm, ProxyRun, compare
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.gate.scores import LN2, DocumentScore
from jupiterd.cycle.gate.verdict import Verdict, decide
from jupiterd.cycle.generation.promotion import (
    AcceptanceStats,
    PastRound,
    PromotionRules,
    active_generators_after,
    writers_of,
)
from jupiterd.cycle.generation.synthetic_share import ControlResult, share_after
from tests.bench.cycle.byte_student import ByteStudent

SEED = 3
ROUNDS = 6
DOCUMENT_BYTES = 1000
TEMPLATE = "continuation"
RULES = PromotionRules((TEMPLATE,), 0.005, has_named=False)
CONTROL_SEEDS = (1, 2)
SPREAD_BPB = 0.002
"""What halves of the same text differ by in how much a tenth of synthetic text does to them."""

GOAL_BPB = 0.01


@dataclass(frozen=True)
class Texts:
    """Real text of Python's library, in documents of a thousand bytes."""

    real: tuple[bytes, ...]
    gate: tuple[bytes, ...]
    dev: tuple[bytes, ...]

    @cached_property
    def student(self) -> ByteStudent:
        """The one that has learned from real text alone."""
        return ByteStudent(self.real)

    def bpb(self, student: ByteStudent) -> float:
        """Return bits per byte on all held-out text."""
        held_out = (*self.gate, *self.dev)
        return sum(map(student.nats, held_out)) / (LN2 * sum(map(len, held_out)))


@dataclass(frozen=True)
class Round:
    """What came of one round."""

    candidate_bpb: float
    in_force_bpb: float
    """Of the last student that was shown to be better: what people are given."""
    synthetic_share: float


def read_texts(documents: int, held_out: int, seed: int = SEED) -> Texts:
    """Return so many documents to learn from, and so many for the gate and for development each."""
    folder = Path(sysconfig.get_path("stdlib"))
    found = [
        text[begin : begin + DOCUMENT_BYTES]
        for path in sorted(folder.glob("*.py"))
        for text in [path.read_bytes()[: 20 * DOCUMENT_BYTES]]
        for begin in range(0, len(text) - DOCUMENT_BYTES, DOCUMENT_BYTES)
    ]
    Random(seed).shuffle(found)
    gate, dev = found[:held_out], found[held_out : 2 * held_out]
    return Texts(tuple(found[2 * held_out :][:documents]), tuple(gate), tuple(dev))


def unguarded(texts: Texts, rounds: int = ROUNDS, seed: int = SEED) -> list[float]:
    """Return the bits per byte of each round's student; each learns from the one before alone."""
    chance, student, found = Random(seed), texts.student, [texts.bpb(texts.student)]
    for _ in range(1, rounds):
        student = ByteStudent(_continued(student, text, chance) for text in texts.real * 2)
        found.append(texts.bpb(student))
    return found


def guarded(texts: Texts, rounds: int = ROUNDS, seed: int = SEED) -> list[Round]:
    """Return each round's outcome under the cycle's rules."""
    cycle = _Guarded(texts, Random(seed))
    return [cycle.go() for _ in range(rounds)]


class _Guarded:
    def __init__(self, texts: Texts, chance: Random) -> None:
        self._texts = texts
        self._chance = chance
        self._students: dict[str, ByteStudent] = {}
        self._rounds: list[PastRound] = []
        self._controls: list[ControlResult] = []
        self._synthetic: dict[Offered, bytes] = {}
        self._byte = ByteStudent(texts.real, order=2)
        self._unigram = ByteStudent(texts.real, order=0)
        self._in_force = ""

    def go(self) -> Round:
        number = len(self._rounds) + 1
        written = self._generate()
        taken = self._mixed(number)
        candidate = ByteStudent((*self._texts.real, *taken))
        name = blake3(b"".join([str(number).encode(), *taken])).hexdigest()
        if taken:
            self._control(number, taken)
        verdict = self._judged(number, candidate)
        dev = verdict.dev
        self._students[name] = candidate
        self._rounds.append(
            PastRound(
                number,
                name,
                str(verdict.decision),
                worse_bpb=dev.candidate_bpb - dev.incumbent_bpb if dev else None,
                acceptance={TEMPLATE: written},
            )
        )
        if verdict.decision == "PROMOTE":
            self._in_force = name
        in_force = self._students.get(self._in_force, self._texts.student)
        size = sum(map(len, taken))
        share = size / (size + sum(map(len, self._texts.real)))
        return Round(self._texts.bpb(candidate), self._texts.bpb(in_force), share)

    def _generate(self) -> dict[str, AcceptanceStats]:
        """Let whoever is in force write, and say how much."""
        found: dict[str, AcceptanceStats] = {}
        for writer in writers_of(TEMPLATE, active_generators_after(self._rounds, RULES), None):
            asked = self._texts.real[: round(writer.share * len(self._texts.real))]
            student = self._students[writer.generator.artifact]
            for text in asked:
                made = _continued(student, text, self._chance)
                ids = blake3(made).hexdigest(), blake3(text).hexdigest()
                self._synthetic[Offered(ids[0], len(made), ids[1])] = made
            found[writer.generator.id] = AcceptanceStats(len(asked), len(asked))
        return found

    def _mixed(self, number: int) -> tuple[bytes, ...]:
        cap = share_cap(None, is_own=True)
        share = share_after(self._controls, cap, cap).share
        real_bytes = sum(map(len, self._texts.real))
        taken, _ = take_synthetic(real_bytes, self._synthetic, share, str(number))
        return tuple(text for offered, text in self._synthetic.items() if offered.id in taken)

    def _control(self, number: int, taken: Sequence[bytes]) -> None:
        runs: list[ProxyRun] = []
        for seed in CONTROL_SEEDS:
            half = self._texts.real[seed % 2 :: 2]
            for arm, more in ((Arm.MIX, taken[seed % 2 :: 2]), (Arm.REAL, ())):
                nats = sum(map(ByteStudent((*half, *more)).nats, self._texts.dev))
                bpb = nats / (LN2 * sum(map(len, self._texts.dev)))
                runs.append(ProxyRun(arm, seed, bpb, 0, 0, 0, 0.0, "", "", SPREAD_BPB))
        compared = compare(runs, Arm.MIX, Arm.REAL)
        if compared is not None:
            self._controls.append(ControlResult(number, compared))

    def _judged(self, number: int, candidate: ByteStudent) -> Verdict:
        incumbent = self._students.get(self._in_force, self._byte)
        parts = [(GATE, text) for text in self._texts.gate] + [(DEV, t) for t in self._texts.dev]
        scores = [
            DocumentScore(
                f"{place:05}", str(place), "code", len(text), 300,
                candidate.nats(text), incumbent.nats(text), incumbent.nats(text),
                self._byte.nats(text), self._unigram.nats(text), part,
            )
            for place, (part, text) in enumerate(parts)
        ]  # fmt: skip
        size = len(self._texts.gate)
        settings = GateSettings(0.05, RULES.margin_bpb, 0.02, size, size)
        return decide(scores, settings, number, Findings(Sanity(loads=True, completions=8)))


def _continued(student: ByteStudent, text: bytes, chance: Random) -> bytes:
    """Return the second half of a document as a student writes it: grounded in the first."""
    half = len(text) // 2
    return student.write_on(text[:half], half, chance)


def print_collapse(_trials: int) -> None:
    """Print what becomes of students with the rules and without."""
    began_s = time.perf_counter()
    texts = read_texts(documents=200, held_out=60)
    real_bpb = texts.bpb(texts.student)
    print(f"collapse, seed {SEED}, {ROUNDS} rounds, students that count bytes, 200 documents")
    print(f"  real text alone: {real_bpb:.4f} bits per byte")
    off, on = unguarded(texts), guarded(texts)
    print(f"  without the rules:  {' '.join(f'{bpb - real_bpb:+.4f}' for bpb in off)}  (collapses)")
    for name, above in (
        ("candidates", [each.candidate_bpb - real_bpb for each in on]),
        ("in force", [each.in_force_bpb - real_bpb for each in on]),
    ):
        told = "reached" if max(above) <= GOAL_BPB else "MISSED"
        values = " ".join(f"{each:+.4f}" for each in above)
        print(f"  with them, {name:<10}  {values}  [<= +0.01 {told}]")
    shares = " ".join(f"{each.synthetic_share:.1%}" for each in on)
    print(f"  synthetic share: {shares}; in {time.perf_counter() - began_s:.0f} s")
