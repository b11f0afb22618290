"""Candidates before the gate whose improvement is known, for the tests of its questions."""

import math

from jupiterd.cycle.gate.case import GateSettings
from jupiterd.cycle.gate.proxy import ProxyRun
from jupiterd.cycle.gate.scores import ClozeScore, DocumentScore

SETTINGS = GateSettings(
    alpha=0.05, margin_bpb=0.005, stratum_veto_bpb=0.02, min_documents=20, min_clusters=5
)
DOCUMENT_BYTES = 1000
NATS_PER_BPB = math.log(2) * DOCUMENT_BYTES


def document(number, saved_bpb, generator_saved_bpb=None, **changes):
    """Return a document of which the candidate saves so much beside last student and generator."""
    generator_saved = saved_bpb if generator_saved_bpb is None else generator_saved_bpb
    fields = {
        "id": f"{number:06}",
        "cluster": str(number // 3),
        "stratum": "code",
        "bytes": DOCUMENT_BYTES,
        "tokens": 300,
        "candidate_nats": 2.0 * NATS_PER_BPB,
        "incumbent_nats": (2.0 + saved_bpb) * NATS_PER_BPB,
        "generator_nats": (2.0 + generator_saved) * NATS_PER_BPB,
        "byte_nats": 3.0 * NATS_PER_BPB,
        "unigram_nats": 4.0 * NATS_PER_BPB,
    }
    return DocumentScore(**{**fields, **changes})


def documents(source, saved_bpb, generator_saved_bpb=None, count=90, noise_bpb=0.01, **changes):
    """Return documents that differ by chance."""
    shift = 0.0 if generator_saved_bpb is None else generator_saved_bpb - saved_bpb
    drawn = [source.gauss(saved_bpb, noise_bpb) for _ in range(count)]
    return [document(n, each, each + shift, **changes) for n, each in enumerate(drawn)]


def gaps(only_candidate, only_generator, both=0):
    """Return gaps that so many models fill rightly."""
    kinds = [(True, False)] * only_candidate + [(False, True)] * only_generator
    kinds += [(True, True)] * both
    return [
        ClozeScore(f"gap{n:05}", str(n // 3), "identifier", ours, theirs, theirs)
        for n, (ours, theirs) in enumerate(kinds)
    ]


def students(spread_bpb=0.01, **bpb_of_arms):
    """Return small students of each arm, with so many bits per byte for each seed."""
    return [
        ProxyRun(
            arm=arm,
            seed=seed,
            bpb=bpb,
            documents=12,
            tokens=61_440,
            parameters=369_216,
            synthetic_share=0.0 if arm == "real" else 0.3,
            shards=f"{arm:0<64}",
            engine="torch on cpu",
            spread_bpb=spread_bpb,
        )
        for arm, all_bpb in bpb_of_arms.items()
        for seed, bpb in enumerate(all_bpb, 1)
    ]
