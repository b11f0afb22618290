"""What the metrics say of a node that trains, and of one that doesn't."""

import re
from dataclasses import replace
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from jupiterd.daemon.observability.metrics_collector import registry_of
from jupiterd.daemon.observability.metrics_reading import MetricsReading, TrainedTokens
from jupiterd.daemon.observability.metrics_table import TABLE, Kind
from jupiterd.daemon.runtime.logged_events import MAX_EVENTS, OTHERS, LoggedEvents

GIB = 1 << 30

OWN: dict[str, Any] = {
    "id": "a1",
    "state": "alive",
    "hardware": {
        "engines": ["torch", "mlx"],
        "gpus": [{"memory_bytes": 24 * GIB}, {"memory_bytes": 24 * GIB}],
    },
    "load": {"cpu_percent": 68.5, "ram_used_bytes": 3 * GIB, "ram_bytes": 4 * GIB},
    "gpu_loads": [
        {
            "utilization_percent": 89.0,
            "memory_used_bytes": 12 * GIB,
            "temperature_celsius": 71.0,
            "power_watts": 312.5,
        },
        {"utilization_percent": None, "memory_used_bytes": None},
    ],
}

RUN: dict[str, Any] = {
    "id": "r1",
    "state": "running",
    "phase": "train",
    "step": 120,
    "total_steps": 500,
    "tokens": 245760,
    "loss": 3.25,
    "tokens_per_s": 1000.0,
    "val_bpb": None,
    "gang": [{"node": "a1"}, {"node": "a1"}, {"node": "b2"}],
    "generators": [],
}


def reading(cycle: dict[str, Any] | None = None, **more: Any) -> MetricsReading:
    status = {
        "node": {"id": "a1"},
        "cluster": {"leader": "a1"},
        "nodes": [OWN, {"id": "b2", "state": "gone"}, {"id": "c3", "state": "gone"}],
        "cycle": cycle,
        "train": None,
        "refused": {"too-often": 3},
        "health": [{"code": "node-gone", "severity": "warning"}] * 2,
    }
    return MetricsReading(status=status, loop_lag_s=0.02, tokens=5000, **more)


def scraped(read: MetricsReading) -> dict[str, float]:
    """Return each sample as it is written, and its value."""
    text = generate_latest(registry_of(lambda: read)).decode()
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if not line.startswith("#")
    }


def test_a_running_training_is_told_of_with_what_the_machine_does() -> None:
    told = scraped(reading(RUN))
    assert told["jupiter_is_leader"] == 1
    assert told['jupiter_peers{state="alive"}'] == 1
    assert told['jupiter_peers{state="gone"}'] == 2
    assert told['jupiter_health{code="node-gone",severity="warning"}'] == 2
    assert told['jupiter_cycle_phase{phase="train"}'] == 1
    assert told['jupiter_cycle_phase{phase="pack"}'] == 0
    assert (told["jupiter_train_step"], told["jupiter_train_loss"]) == (120, 3.25)
    assert told["jupiter_round_participants"] == 2
    assert told["jupiter_tokens_processed_total"] == 5000
    assert told['jupiter_calls_refused_total{kind="too-often"}'] == 3
    assert told["jupiter_cpu_utilization_ratio"] == 0.685
    assert told['jupiter_gpu_utilization_ratio{device="0"}'] == 0.89
    assert told['jupiter_gpu_temperature_celsius{device="0"}'] == 71
    assert told['jupiter_gpu_memory_size_bytes{device="1"}'] == 24 * GIB


def test_what_isnt_known_has_no_sample_and_is_never_0() -> None:
    told = scraped(reading(RUN))
    assert 'jupiter_gpu_utilization_ratio{device="1"}' not in told
    assert "jupiter_eval_bits_per_byte" not in told
    assert "jupiter_checkpoint_size_bytes" not in told
    idle = scraped(reading(RUN | {"state": "finished"}))
    assert "jupiter_train_loss" not in idle
    assert idle['jupiter_cycle_phase{phase="train"}'] == 0
    diverged = scraped(reading(RUN | {"loss": float("nan")}))
    assert "jupiter_train_loss" not in diverged


def test_the_duration_of_rounds_is_a_histogram_of_all_that_are_committed() -> None:
    told = scraped(reading(round_s=(30.0, 300.0, 301.0, 1e6)))
    counts = {
        float(found[1]): value
        for name, value in told.items()
        if (found := re.fullmatch(r'jupiter_round_duration_seconds_bucket\{le="(.+)"\}', name))
    }
    assert counts[60.0] == 1
    assert counts[300.0] == 2
    assert counts[900.0] == 3
    assert counts[float("inf")] == 4
    assert list(counts.values()) == sorted(counts.values())
    assert told["jupiter_round_duration_seconds_count"] == 4
    assert told["jupiter_round_duration_seconds_sum"] == 1000631.0


def test_names_are_as_prometheus_wants_them() -> None:
    text = generate_latest(registry_of(lambda: reading(RUN))).decode()
    kinds = {family.name: family.type for family in text_string_to_metric_families(text)}
    for metric in TABLE:
        assert re.fullmatch(r"jupiter(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
        assert kinds[metric.name.removesuffix("_total")] == metric.kind
        assert not {"cycle", "run", "node"} & set(metric.labels)
        assert metric.says.endswith(".")


def test_a_counter_begins_at_0_and_never_falls() -> None:
    tokens, counted = TrainedTokens(), list[int]()
    for told in (1000, 1200, 1100, 1500, 0):
        tokens.note({"run": told}, {})
        counted.append(tokens.total)
    assert counted == [0, 200, 200, 500, 500]


def test_what_a_ledger_brings_was_trained_before_and_what_a_run_records_at_its_end_counts() -> None:
    tokens = TrainedTokens()
    tokens.note({}, {"old": 9_000_000})
    tokens.note({"new": 10}, {"old": 9_500_000})
    tokens.note({"new": 90}, {"old": 9_500_000})
    assert tokens.total == 80
    tokens.note({}, {"old": 9_500_000, "new": 100})
    assert tokens.total == 90


def test_others_cant_make_ever_more_labels() -> None:
    import logging

    events = LoggedEvents()
    for number in range(MAX_EVENTS + 10):
        events.handle(logging.makeLogRecord({"msg": f"event_{number}", "levelno": 30}))
    assert len(events.counts) == MAX_EVENTS + 1
    assert events.counts[OTHERS] == 10


def test_models_that_are_served_are_told_of_by_name() -> None:
    rows = [{"model": "promoted", "answers": 3, "queued": 1, "tokens_per_s": 41.5}]
    status = reading().status | {"nodes": [OWN | {"serving": rows}]}
    answers = {"answered": 7, "lost": 1, "refused": 2}
    told = scraped(replace(reading(answers=answers, answer_tokens=900), status=status))
    assert told['jupiter_serve_answers{model="promoted"}'] == 3
    assert told['jupiter_serve_queued_requests{model="promoted"}'] == 1
    assert told['jupiter_serve_tokens_per_second{model="promoted"}'] == 41.5
    assert told['jupiter_serve_requests_total{outcome="lost"}'] == 1
    assert told["jupiter_serve_tokens_total"] == 900
