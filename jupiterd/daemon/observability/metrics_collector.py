"""A reading, as Prometheus takes it.

Owns what becomes of each kind of metric in `prometheus_client`'s families. Only loaded where
somebody asked for metrics: the library takes memory. Doesn't know how a reading is made.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector, CollectorRegistry

from jupiterd.daemon.observability.metrics_reading import MetricsReading
from jupiterd.daemon.observability.metrics_table import ROUND_BUCKETS_S, TABLE, Kind, Metric


class NodeCollector(Collector):
    """Takes a reading each time somebody asks, and holds nothing between."""

    def __init__(self, read: Callable[[], MetricsReading]) -> None:
        """`read` may take a moment, and is called in the thread of whoever asks."""
        self._read = read

    def collect(self) -> Iterator[Family]:
        """Yield every family of the table; one without samples is there by its name alone."""
        reading = self._read()
        for metric in TABLE:
            yield _family(metric, reading)


def registry_of(read: Callable[[], MetricsReading]) -> CollectorRegistry:
    """Return a registry of its own, with nothing else of this process in it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(read))
    return registry


def _family(metric: Metric, reading: MetricsReading) -> Family:
    samples = [(labels, value) for labels, value in metric.samples(reading) if value is not None]
    if metric.kind is Kind.HISTOGRAM:
        return _histogram(metric, [value for _, value in samples])
    family = (CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily)(
        metric.name, metric.says, labels=metric.labels
    )
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def _histogram(metric: Metric, values: Sequence[float]) -> Family:
    ordered = sorted(values)
    buckets = [(str(float(bound)), bisect_right(ordered, bound)) for bound in ROUND_BUCKETS_S]
    family = HistogramMetricFamily(metric.name, metric.says)
    family.add_metric((), [*buckets, ("+Inf", len(ordered))], sum(ordered))
    return family
