"""The task `choose_proxy_text`: the real text that small students learn from, and are scored on.

Owns both choices, and which part of a round's generated text goes with the real one. Doesn't pack.

They are scored on the `dev` part of the holdout. Where a domain holds out none, some clusters of
its training text are set aside instead: no small student learns from them, nor from anything that
was made of them. The gate's text is never used, for it may be looked at only once a candidate.

inputs: kept (sample folder), holdout.N
params: real_bytes, scored_bytes, limits of `evaluation`, seed, purged, packed (where the round has
synthetic text: synthetic_share and seed of its packing)
outputs: real, yardstick, synthetic (where there is some)
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.mixing import Offered, shuffle_key, take_synthetic
from jupiterd.cycle.data.purge import Purge
from jupiterd.cycle.data.split import DEV
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.evaluate.documents import ScoringLimits, choose_documents
from jupiterd.workers.link import Task
from jupiterd.workers.samples.sample_file import SampleWriter, read_all

MOST_SET_ASIDE = 0.25
"""Of the training text's bytes, where nothing is held out for looking at."""

SampleReader = Callable[[], Iterator[Sample]]


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    params = task.params
    purge = Purge(map(str, params.get("purged", ())))
    purge.learn(read_all(task.inputs_named("kept")))

    def read() -> Iterator[Sample]:
        return purge.left(read_all(task.inputs_named("kept")))

    limits = ScoringLimits(**{name: int(value) for name, value in params["limits"].items()})
    seed, scored_bytes = str(params["seed"]), int(params["scored_bytes"])
    held_out = purge.left(read_all(task.inputs_named("holdout")))
    dev = [sample for sample in held_out if sample.split == DEV]
    yardstick = _scored(dev, limits, scored_bytes)
    aside = frozenset[str]()
    if not yardstick:
        aside = _set_aside(read, limits, scored_bytes, seed)
        yardstick = _scored(
            (each for each in read() if each.kind == "real" and each.cluster_id in aside),
            limits,
            scored_bytes,
        )

    def learned() -> Iterator[Sample]:
        return (sample for sample in read() if sample.cluster_id not in aside)

    real = _first(learned(), "real", int(params["real_bytes"]), seed)
    _write(task.output_dir / "real", (each for each in learned() if each.id in real))
    _write(task.output_dir / "yardstick", yardstick)
    outputs = {"real": "real", "yardstick": "yardstick"}
    counts: dict[str, float] = {
        "proxy_documents": len(real),
        "proxy_bytes": sum(real.values()),
        "yardstick_documents": len(yardstick),
    }
    if packed := params.get("packed"):
        part = sum(real.values()) / max(1, _bytes_of(learned(), "real"))
        taken = _packed(read, float(packed["synthetic_share"]), int(packed["seed"]))
        shown = [each for each in learned() if each.id in taken]
        wanted = round(part * _bytes_of(shown, "synthetic"))
        chosen = _first(shown, "synthetic", wanted, seed)
        _write(task.output_dir / "synthetic", (each for each in shown if each.id in chosen))
        outputs["synthetic"] = "synthetic"
    return TaskFinished(outputs, counts, {"set_aside_clusters": len(aside)})


def _scored(samples: Iterable[Sample], limits: ScoringLimits, most_bytes: int) -> list[Sample]:
    """Return documents of about so many bytes, by id; as many clusters as there are."""
    found = {sample.id: sample for sample in samples}
    chosen: list[Sample] = []
    taken_bytes = 0
    for document in choose_documents(found.values(), limits, 0, 1):
        if taken_bytes < most_bytes:
            chosen.append(found[document.id])
            taken_bytes += document.size_bytes
    return sorted(chosen, key=lambda sample: sample.id)


def _set_aside(
    read: SampleReader, limits: ScoringLimits, wanted_bytes: int, seed: str
) -> frozenset[str]:
    """Return clusters in which about so much can be scored; a quarter of the text at most."""
    sizes, scored = Counter[str](), Counter[str]()
    for sample in read():
        if sample.kind == "real":
            size = len(sample.text.encode())
            sizes[sample.cluster_id] += size
            scored[sample.cluster_id] += min(size, limits.max_document_bytes)
    room = MOST_SET_ASIDE * sizes.total()
    found: set[str] = set()
    for cluster in sorted(sizes, key=lambda each: shuffle_key(each, f"aside {seed}")):
        if sum(scored[each] for each in found) >= wanted_bytes:
            break
        if sizes[cluster] <= room:
            found.add(cluster)
            room -= sizes[cluster]
    return frozenset(found)


def _bytes_of(samples: Iterable[Sample], kind: str) -> int:
    return sum(len(sample.text.encode()) for sample in samples if sample.kind == kind)


def _packed(read: SampleReader, share: float, seed: int) -> frozenset[str]:
    """Return the synthetic samples that the round packed."""
    offered = [
        Offered(sample.id, len(sample.text.encode()), sample.parents[0])
        for sample in read()
        if sample.kind == "synthetic"
    ]
    return take_synthetic(_bytes_of(read(), "real"), offered, share, f"mix {seed}")[0]


def _first(samples: Iterable[Sample], kind: str, wanted_bytes: int, seed: str) -> dict[str, int]:
    """Return samples of a kind with their bytes, in an order that looks random, until enough."""
    sizes = {each.id: len(each.text.encode()) for each in samples if each.kind == kind}
    found: dict[str, int] = {}
    taken_bytes = 0
    for name in sorted(sizes, key=lambda each: shuffle_key(each, f"proxy {seed}")):
        if taken_bytes >= wanted_bytes:
            break
        found[name] = sizes[name]
        taken_bytes += sizes[name]
    return found


def _write(folder: Path, samples: Iterable[Sample]) -> None:
    with SampleWriter(folder) as writer:
        for sample in samples:
            writer.add(sample)
