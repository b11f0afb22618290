"""Prints what each screen of the dashboard costs beside its goal.

Once with the updates folded as jupiterd folds them, and once harder: each update by itself.

python -m tests.bench.dashboard [--only TEXT] [--seconds S] [--rate UPDATES_PER_S]
"""

import argparse

from jupiter_tui.widgets.keys import SCREENS
from tests.bench.dashboard.watching import COLUMNS, LINES, Cost, watch
from tests.bench.figure import machine

GOAL_PERCENT = 10.0
SECONDS, UPDATES_PER_S = 20.0, 320.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="screens whose name holds this text")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rate", type=float, default=UPDATES_PER_S)
    chosen = parser.parse_args()
    print(machine())
    print(f"16 nodes, {chosen.rate:g} updates/s, {COLUMNS} x {LINES}, {chosen.seconds:g} s each")
    for folded in (True, False):
        print("folded twice a second, as jupiterd does:" if folded else "each update by itself:")
        for key in SCREENS:
            if chosen.only.lower() in key.label.lower():
                cost = watch(key.names[0], chosen.seconds, chosen.rate, folded=folded)
                print(_row(key.label, cost), flush=True)


def _row(screen: str, cost: Cost) -> str:
    is_reached = cost.cpu_percent <= GOAL_PERCENT and cost.shown == cost.sent
    return (
        f"{screen:<9} {cost.cpu_percent:5.1f} % of one core, "
        f"{cost.bytes_per_s / 1000:5.1f} kB/s to the terminal, "
        f"{cost.shown:,} of {cost.sent:,} updates received ({cost.updates_per_s:.0f}/s)  "
        f"[<= {GOAL_PERCENT:g} % {'reached' if is_reached else 'MISSED'}]"
    )


main()
