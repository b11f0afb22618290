"""Makes rows of what lm-evaluation-harness returns: each metric, with what each document adds.

Owns which figures can be taken apart into documents: those that are a sum over a sum, which is
tried. Others, such as F1 or a perplexity, have their value and the harness's standard error.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from jupiterd.cycle.questions.task_scores import TaskScore

_STDERR: Final = "_stderr"
_AGREE: Final = 1e-9


def task_scores(results: Mapping[str, Any], asked_as: Mapping[str, str]) -> Iterator[TaskScore]:
    """Yield the rows.

    Args:
        results: what the harness returned, with its samples.
        asked_as: name of a task, or of a group -> the name that was asked for; others are left out.
    """
    for name, metrics in results["results"].items():
        for key, value in metrics.items():
            metric, comma, filter_name = str(key).partition(",")
            if name in asked_as and comma and not metric.endswith(_STDERR):
                yield _row(results, (asked_as[name], name), (metric, filter_name), value)


def _row(
    results: Mapping[str, Any], names: tuple[str, str], of: tuple[str, str], value: float
) -> TaskScore:
    name, (metric, filter_name) = names[1], of
    found: Mapping[str, Any] = results["results"][name]
    samples: Sequence[Mapping[str, Any]] = results.get("samples", {}).get(name, ())
    each = [sample.get(metric) for sample in samples if sample["filter"] == filter_name]
    values, weights = _apart(each, float(value))
    return TaskScore(
        *names,
        *of,
        float(value),
        _number(found.get(f"{metric}{_STDERR},{filter_name}")),
        results.get("higher_is_better", {}).get(name, {}).get(metric),
        int(found.get("sample_len") or len(each)),
        tuple(values),
        tuple(weights),
    )


def _apart(each: Sequence[object], whole: float) -> tuple[list[float], list[float]]:
    """Return what each document adds to the figure; nothing where that isn't the figure."""
    for values, weights in _ways(each):
        weight = math.fsum(weights)
        if weight and math.isclose(
            math.fsum(values) / weight, whole, rel_tol=_AGREE, abs_tol=_AGREE
        ):
            return values, weights
    return [], []


def _ways(each: Sequence[object]) -> Iterator[tuple[list[float], list[float]]]:
    """Yield how a figure may be made: as a mean, or as bits per byte or per word."""
    numbers = [float(one) for one in each if isinstance(one, int | float)]
    if len(numbers) == len(each):
        yield numbers, [1.0] * len(each)
    pairs = [one for one in each if isinstance(one, tuple | list) and len(one) == 2]
    if len(pairs) == len(each):
        yield [-float(a) / math.log(2) for a, _ in pairs], [float(b) for _, b in pairs]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
