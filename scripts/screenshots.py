"""Take the screenshots of the README from running daemons.

    make demo                                              # in one terminal
    .venv/bin/python scripts/screenshots.py --state-dir .demo/node-1    # in another, at any time

Owns when the pictures are worth taking: when training has drawn a part of its curve.
Nothing in them is prepared: it is the dashboard itself, on a terminal that nobody sees.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

from jupiter_tui.app import JupiterTui
from jupiter_tui.model.scene import Options
from jupiter_tui.widgets.keys import SCREENS
from jupiterd.ctl.output.progress_lines import ENDED_STATES

ROOT = Path(__file__).resolve().parent.parent
SIZE = (120, 40)
LOOK_S = 0.5
CONNECT_TIMEOUT_S = 30.0


def main() -> int:
    """Take the pictures; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--state-dir", type=Path, required=True, help="of a running daemon")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "screenshots")
    parser.add_argument("--points", type=int, default=60, help="points of the loss to wait for")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="S")
    return asyncio.run(take(parser.parse_args()))


async def take(options: argparse.Namespace) -> int:
    """Wait for something to show, then write a picture of each screen."""
    app = JupiterTui(Options(options.state_dir.absolute()))
    options.out.mkdir(parents=True, exist_ok=True)
    async with app.run_test(size=SIZE) as pilot:

        async def seen(is_seen: Callable[[], bool], timeout_s: float) -> bool:
            until_s = time.monotonic() + timeout_s
            while not is_seen() and time.monotonic() < until_s:
                await pilot.pause(LOOK_S)
            return is_seen()

        if not await seen(lambda: bool(app.scene().view.document), CONNECT_TIMEOUT_S):
            print(f"no daemon answers: {app.scene().view.reason}", file=sys.stderr)
            return 1
        if not await seen(lambda: is_worth_it(app, options.points), options.timeout):
            print("no training was seen in time; taking the pictures as they are")
        for screen in (key.label.lower() for key in SCREENS):
            app.action_show_screen(screen)
            await pilot.pause(6 * LOOK_S)  # what a screen listens to has to come first
            path = options.out / f"{screen}.svg"
            path.write_text(app.export_screenshot())
            print(f"wrote {path}")
    return 0


def is_worth_it(app: JupiterTui, points: int) -> bool:
    """Say whether there is a curve to show, or none to come."""
    view = app.scene().view
    return len(view.curve.points) >= points or view.cycle.get("state") in ENDED_STATES


if __name__ == "__main__":
    sys.exit(main())
