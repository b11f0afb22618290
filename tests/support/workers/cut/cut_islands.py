"""An island whose model is cut over ranks of torch, and what it makes of rounds.

Owns the steps of a round as a worker takes them, without daemons. Doesn't know what is expected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jupiterd.workers.islands import cut_vector
from jupiterd.workers.islands.compression import Kind
from jupiterd.workers.islands.flat import Vector
from jupiterd.workers.islands.int8_blocks import BLOCK
from jupiterd.workers.islands.island import IslandView
from jupiterd.workers.islands.outer_step import OuterSettings
from jupiterd.workers.islands.pseudo_gradient_file import PSEUDO_GRADIENT_FILE, read_pseudo_gradient
from jupiterd.workers.islands.pseudo_gradient_stream import StreamedPseudoGradient
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.training_engine import TrainingEngine
from tests.support.workers.cut.cut_models import Case, engine_of

ROUNDS = 3
TOKENS = (300, 100)
SETTINGS = OuterSettings(1.0, 0.6)


@dataclass(frozen=True)
class Ended:
    """What a rank has after some rounds."""

    sent: Sequence[bytes]
    """The file of each round's pseudo-gradient, of the first rank."""
    digests: Sequence[bytes]
    norms: Sequence[float]
    weights: dict[str, np.ndarray]
    residual: int
    """How many numbers it keeps of what packing lost."""


def rounds(group: ProcessGroup, case: Case, kind: Kind, folder: Path) -> Ended:
    """Take rounds: the weights are moved as training might, alike however the model is cut."""
    cut_vector.PART = 3 * BLOCK  # in a process of its own
    engine = engine_of(case, group)
    engine.begin(has_same_weights=False)
    island = IslandView(engine, kind)
    sent, stands, norms = list[bytes](), list[bytes](), list[float]()
    for number in range(ROUNDS):
        engine.load_weights(moved(engine, number))
        own = folder / f"{case.partition and case.partition.stage}-{kind}-{number}"
        difference = island.base - island.end()
        norms.append(island.held.length(difference))
        scratch = folder / f"{own.name}.unpacked"
        island.held.packed(island.packer, difference, scratch).write(own)
        if not group.rank:
            sent.append((own / PSEUDO_GRADIENT_FILE).read_bytes())
        engine.gather([0.0])  # the first rank has written it
        size = island.layout.size
        read = StreamedPseudoGradient if island.held.is_cut else read_pseudo_gradient
        ways = (read(way, size) for way in (own, folder / "another"))
        island.take(island.merged(ways, TOKENS, SETTINGS))
        stands.append(island.held.digest(island.state))
    return Ended(sent, stands, norms, dict(engine.weights()), island.packer.residual.size)


def moved(engine: TrainingEngine, number: int) -> dict[str, np.ndarray]:
    """Return other weights: those that there are, and more."""
    chance = np.random.default_rng(number)
    return {
        name: values + np.float32(1e-2) * chance.standard_normal(values.shape, np.float32)
        for name, values in sorted(engine.weights().items())
    }


def another(size: int) -> Vector:
    """Return what another island sends."""
    return np.random.default_rng(7).standard_normal(size, np.float32) * np.float32(1e-2)
