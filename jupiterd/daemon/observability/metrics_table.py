"""Every metric there is: its name, its kind, what it says, and where in a reading it is found.

Owns the names, which dashboards rely on: base units, ratios from 0 to 1, `_total` on counters, and
no id of a cycle or a run as a label. Pure. Doesn't know what Prometheus makes of them
(`metrics_collector`); docs/metrics.md is written out of it.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from jupiterd import __version__
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.observability.metrics_reading import MetricsReading

STATES = ("alive", "suspect", "gone", "pending")
"""Of a member, or of who waits to be one."""

ROUND_BUCKETS_S = (60, 300, 900, 1800, 3600, 2 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400)

Sample = tuple[tuple[str, ...], float | None]
"""The values of its labels, and its own; None: it isn't known, and isn't shown."""


class Kind(StrEnum):
    """What a metric's number does."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """One row of the table."""

    name: str
    kind: Kind
    says: str
    samples: Callable[[MetricsReading], Iterable[Sample]]
    """Of a histogram: one for each thing that was measured."""
    labels: tuple[str, ...] = ()


def _gauge(name: str, says: str, read: Callable[[MetricsReading], float | None]) -> Metric:
    return Metric(name, Kind.GAUGE, says, lambda reading: [((), read(reading))])


def _build(reading: MetricsReading) -> Iterator[Sample]:
    engines = reading.own.get("hardware", {}).get("engines") or ["none"]
    yield (__version__, ",".join(engines)), 1.0


def _peers(reading: MetricsReading) -> Iterator[Sample]:
    counts = Counter(str(row["state"]) for row in reading.status["nodes"])
    yield from (((state,), counts[state]) for state in STATES)


def _phases(reading: MetricsReading) -> Iterator[Sample]:
    running = reading.running.get("phase")
    yield from (((str(phase),), float(phase == running)) for phase in Phase)


def _participants(reading: MetricsReading) -> float:
    rows = [*reading.running.get("gang", ()), *reading.running.get("generators", ())]
    return len({row["node"] for row in rows})


def _health(reading: MetricsReading) -> Iterator[Sample]:
    found = Counter((line["code"], line["severity"]) for line in reading.status["health"])
    yield from (((code, severity), count) for (code, severity), count in sorted(found.items()))


def _of_gpus(name: str, factor: float = 1.0) -> Callable[[MetricsReading], Iterator[Sample]]:
    """Return what reads one figure of each accelerator, in the order of the machine's."""

    def read(reading: MetricsReading) -> Iterator[Sample]:
        for number, load in enumerate(reading.own.get("gpu_loads", ())):
            yield (str(number),), _scaled(load.get(name), factor)

    return read


def _gpu_sizes(reading: MetricsReading) -> Iterator[Sample]:
    for number, gpu in enumerate(reading.own.get("hardware", {}).get("gpus", ())):
        yield (str(number),), _number(gpu.get("memory_bytes"))


def _of_models(name: str) -> Callable[[MetricsReading], Iterator[Sample]]:
    """Return what reads one figure of each model that this node serves."""

    def read(reading: MetricsReading) -> Iterator[Sample]:
        for row in reading.own.get("serving", ()):
            yield (str(row.get("model")),), _number(row.get(name))

    return read


def _running(name: str) -> Callable[[MetricsReading], float | None]:
    return lambda reading: _number(reading.running.get(name))


def _load(name: str, factor: float = 1.0) -> Callable[[MetricsReading], float | None]:
    return lambda reading: _scaled(reading.own.get("load", {}).get(name), factor)


def _scaled(value: object, factor: float) -> float | None:
    number = _number(value)
    return None if number is None else number * factor


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return float(cast("float", value)) if is_number else None


def _each(counts: Mapping[str, Any] | None) -> Iterator[Sample]:
    yield from (((name,), _number(count)) for name, count in sorted((counts or {}).items()))


PERCENT = 0.01

TABLE: tuple[Metric, ...] = (
    Metric(
        "jupiter_build_info",
        Kind.GAUGE,
        "1, with the version and the engines of this node as labels.",
        _build,
        ("version", "backend"),
    ),
    Metric(
        "jupiter_peers",
        Kind.GAUGE,
        "Nodes of the cluster as this one sees them, itself included, by state.",
        _peers,
        ("state",),
    ),
    _gauge(
        "jupiter_is_leader",
        "1 where this node leads the cluster, else 0.",
        lambda reading: reading.status["cluster"]["leader"] == reading.status["node"]["id"],
    ),
    Metric(
        "jupiter_health",
        Kind.GAUGE,
        "Lines of health in status, by code and severity.",
        _health,
        ("code", "severity"),
    ),
    Metric(
        "jupiter_cycle_phase",
        Kind.GAUGE,
        "1 for the phase that runs, 0 for the others.",
        _phases,
        ("phase",),
    ),
    _gauge("jupiter_train_step", "Steps trained of the running training.", _running("step")),
    _gauge("jupiter_train_total_steps", "Steps it will have.", _running("total_steps")),
    _gauge("jupiter_train_loss", "Its newest loss, in nats a token.", _running("loss")),
    _gauge(
        "jupiter_held_out_loss",
        "Its newest loss on held-out text, in nats a token.",
        _running("held_out_loss"),
    ),
    _gauge(
        "jupiter_train_tokens_per_second",
        "Tokens it trains on each second.",
        _running("tokens_per_s"),
    ),
    _gauge(
        "jupiter_eval_bits_per_byte",
        "The newest model's score on held-out text, in bits a byte.",
        _running("val_bpb"),
    ),
    Metric(
        "jupiter_tokens_processed_total",
        Kind.COUNTER,
        "Tokens trained on in the whole cluster, counted from this daemon's start.",
        lambda reading: [((), reading.tokens)],
    ),
    Metric(
        "jupiter_round_duration_seconds",
        Kind.HISTOGRAM,
        "How long the phases of each committed round took, added up.",
        lambda reading: [((), took_s) for took_s in reading.round_s],
    ),
    _gauge(
        "jupiter_round_participants",
        "Nodes that train or generate in the running round.",
        _participants,
    ),
    _gauge(
        "jupiter_checkpoint_size_bytes",
        "The newest checkpoint's size, where a copy lies on this node.",
        lambda reading: reading.checkpoint_bytes,
    ),
    Metric(
        "jupiter_network_sent_bytes_total",
        Kind.COUNTER,
        "Bytes this node sent to others, by kind: artifacts alone (gangs send by themselves).",
        lambda reading: _each(reading.sent_bytes),
        ("kind",),
    ),
    Metric(
        "jupiter_calls_refused_total",
        Kind.COUNTER,
        "Calls of others that this node refused, by kind.",
        lambda reading: _each(reading.status["refused"]),
        ("kind",),
    ),
    Metric(
        "jupiter_errors_total",
        Kind.COUNTER,
        "Warnings and errors in this daemon's log, by event.",
        lambda reading: _each(reading.errors),
        ("code",),
    ),
    Metric(
        "jupiter_serve_answers",
        Kind.GAUGE,
        "Answers that this node writes now, by model.",
        _of_models("answers"),
        ("model",),
    ),
    Metric(
        "jupiter_serve_queued_requests",
        Kind.GAUGE,
        "Requests for text that wait for an engine of this node, by model.",
        _of_models("queued"),
        ("model",),
    ),
    Metric(
        "jupiter_serve_tokens_per_second",
        Kind.GAUGE,
        "Tokens that each model writes here each second, in all its answers together.",
        _of_models("tokens_per_s"),
        ("model",),
    ),
    Metric(
        "jupiter_serve_requests_total",
        Kind.COUNTER,
        "Requests for text that engines of this node had, by what became of them.",
        lambda reading: _each(reading.answers),
        ("outcome",),
    ),
    Metric(
        "jupiter_serve_tokens_total",
        Kind.COUNTER,
        "Tokens that engines of this node wrote, as far as answers tell.",
        lambda reading: [((), reading.answer_tokens)],
    ),
    _gauge(
        "jupiter_event_loop_lag_seconds",
        "The worst of the last minutes: by how much the daemon's loop came too late.",
        lambda reading: reading.loop_lag_s,
    ),
    _gauge("jupiter_cpu_utilization_ratio", "Of all cores.", _load("cpu_percent", PERCENT)),
    _gauge("jupiter_memory_used_bytes", "Of the machine's memory.", _load("ram_used_bytes")),
    _gauge("jupiter_memory_size_bytes", "The machine's memory.", _load("ram_bytes")),
    _gauge(
        "jupiter_process_resident_bytes",
        "Memory of the daemon and its workers; what they share counts for each.",
        _load("process_bytes"),
    ),
    _gauge(
        "jupiter_disk_free_bytes",
        "What is free on the disk of the state folder.",
        _load("disk_free_bytes"),
    ),
    _gauge("jupiter_disk_size_bytes", "That disk's size.", _load("disk_bytes")),
    _gauge(
        "jupiter_gpus_throttled",
        "Accelerators of this node that run slower because they are too hot.",
        _load("throttled_gpus"),
    ),
    Metric(
        "jupiter_gpu_utilization_ratio",
        Kind.GAUGE,
        "How busy each accelerator of this node is.",
        _of_gpus("utilization_percent", PERCENT),
        ("device",),
    ),
    Metric(
        "jupiter_gpu_memory_used_bytes",
        Kind.GAUGE,
        "Memory in use on each.",
        _of_gpus("memory_used_bytes"),
        ("device",),
    ),
    Metric(
        "jupiter_gpu_memory_size_bytes",
        Kind.GAUGE,
        "Memory that each has.",
        _gpu_sizes,
        ("device",),
    ),
    Metric(
        "jupiter_gpu_temperature_celsius",
        Kind.GAUGE,
        "How warm each is.",
        _of_gpus("temperature_celsius"),
        ("device",),
    ),
    Metric(
        "jupiter_gpu_power_watts",
        Kind.GAUGE,
        "What each takes.",
        _of_gpus("power_watts"),
        ("device",),
    ),
)
"""Every metric, in the order of output."""
