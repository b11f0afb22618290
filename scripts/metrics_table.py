"""Write docs/metrics.md: every metric and every alert there is, out of the tables in the code.

    make metrics-table    (--check: changes nothing; exit 1 where the page is out of date)

Owns the words around the tables. Knows no metric or alert by name.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from jupiterd.cluster.health.alerts import TABLE as ALERTS
from jupiterd.cluster.health.alerts import Rule
from jupiterd.daemon.observability.metrics_table import TABLE as METRICS
from jupiterd.daemon.observability.metrics_table import Metric

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "metrics.md"

METRICS_HEAD = """\
# Metrics and alerts

The tables are written by `make metrics-table` (`scripts/metrics_table.py`) out of the code.

## Prometheus

Nothing listens unless it is asked for: `jupiterd --metrics 9474`, `JUPITER_METRICS=9474`, or
`metrics: 9474` in `jupiter.yaml`. A port alone means the loopback interface; `HOST:PORT` serves
other machines too, and the log says so, for nothing asks who reads. Each daemon tells of its own
machine, and of the cluster as it sees it: take `max` over the nodes of what is the cluster's, not
the sum. What isn't known has no sample, and is never 0. Values are read from the daemon when they
are fetched. A port that is in use costs one line in the log, and is tried again now and then.

```yaml
scrape_configs:
  - job_name: jupiter
    static_configs:
      - targets: ["127.0.0.1:9474"]
```

`config/grafana/jupiter.json` is a dashboard for Grafana: import it and choose the data source.

| metric | kind | labels | says |
|---|---|---|---|
"""

ALERTS_HEAD = """
## Alerts

What people want to hear of even where they don't look. Each is in the log, in `jupiterctl status`,
in the dashboard's health panel, and among the events when it is raised and when it is over. It is
raised once it has *held* for so long, and over once it hasn't for so long, so that nothing flaps.
(`node-gone` and `link-out` are in the status at once.) Verdicts and failures are shown for an hour,
and so is of a cycle that has ended what it dropped; what is said of an older cycle ends where a
newer one begins. `jupiterctl status --check` passes over `mostly-dropped`, `not-offered`,
`gang-knocked` and `port-crowded`: the cluster is well. For the health check of a container or a
service take
`status --check --node self`, which counts what is wrong with that machine alone: one that another
machine's trouble restarts helps nobody.

`jupiterctl dismiss` ends, on all machines, every alarm about what has happened: what failed, who
knocked, what was refused, what was dropped, a verdict. What lasts must be named, by its code or by
what it is about: `jupiterctl dismiss disk-low`, `jupiterctl dismiss attic`. It is silent until it
is over, and rings when it begins again (what is back within 30 s was never over). What only some
machines see is over once the one on which it was dismissed sees it no more. What happens anew rings
anew. In the dashboard `H` on the first screen ends all that health shows, what lasts too. Who
dismissed it is recorded; `status --check` passes, `status -o json` lists it under `dismissed`, and
the events say `dismissed:`. A webhook is told that it is over. Only trusted members may
(`jupiterctl cycle dismiss`, for what failed alone, is for all). What can't be dismissed: that
nobody leads, that this machine waits or was removed, and machines that wait to be let in; each ends
with its cause.

| code | severity | says | held | over |
|---|---|---|---|---|
"""

WEBHOOK = """
One node of each connected group posts alerts to a webhook: the leader, or where that has none the
first member that has one. Nodes tell each other what was sent, so a new leader sends nothing twice
as far as it knows. Whoever was told of an alert is told once more when it is over, by a message
with the same `key`. Verdicts and failures are never over. A sender that was started anew meanwhile,
and hasn't seen an alert raised, doesn't tell of its end.

```yaml
alerts:
  webhook: https://ntfy.sh/some-topic-that-nobody-guesses
  form: auto              # json, ntfy, slack or discord; auto goes by the host
  minimum_severity: info  # or warning, error
```

The address is a secret: documents and logs show its host alone. It may come from the environment
(`JUPITER_ALERTS_WEBHOOK`), and is no flag, for flags are seen by everybody on the machine. A server
that doesn't answer within 5 s, or fails, is asked again after 2 s, 10 s, 30 s, 2 min and 5 min;
what it refuses (400, 403, 404) isn't repeated, and redirections aren't followed. Training never
waits for any of it. The form `json` posts:

```json
{"schema": "jupiter/v1",
 "alert": {"key": "node-gone:8c5f...", "state": "raised", "code": "node-gone",
           "severity": "warning", "title": "attic is gone", "hint": "...",
           "at": "2026-01-02T03:04:05+00:00"},
 "cluster": {"id": "...", "name": "home"}, "node": {"id": "...", "name": "the sender's"}}
```

Once it is over, the same with the `state` `over`. The other forms say `over: attic is gone` then,
ntfy as an ordinary message with a tick.

## Curves

Rank 0 of each gang writes `logs/curves/RUN/metrics.jsonl` (a line for each step; the newest part
of a very long run, with older parts beside it) and TensorBoard's files in the same folder:
`tensorboard --logdir`. The program that shows them isn't a part of Jupiter: `pip install
tensorboard` on the machine where you look. Where neither can be written, training goes on and the
worker's log says so once.
"""


def main() -> None:
    """Write the page, or compare with --check."""
    if "--check" in sys.argv[1:]:
        if TARGET.read_text() != page():
            sys.exit(f"{TARGET.relative_to(ROOT)} is out of date: make metrics-table")
        return
    TARGET.write_text(page())
    print(f"{TARGET.relative_to(ROOT)}: {len(METRICS)} metrics, {len(ALERTS)} alerts")


def page() -> str:
    """Return the page."""
    metrics = "".join(map(_metric, METRICS))
    return "".join([METRICS_HEAD, metrics, ALERTS_HEAD, *_alerts(), WEBHOOK])


def _metric(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.says} |\n"


def _alerts() -> Iterator[str]:
    for code, rule in ALERTS.items():
        yield _alert(code, rule)


def _alert(code: str, rule: Rule) -> str:
    says = rule.title.format(subject="...", detail="...")
    return f"| `{code}` | {rule.severity} | {says} | {rule.hold_s:g} s | {rule.clear_s:g} s |\n"


if __name__ == "__main__":
    main()
