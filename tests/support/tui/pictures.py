"""The dashboard without a terminal, and what stands on it."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from jupiter_tui.app import JupiterTui
from jupiter_tui.model.scene import Options
from tests.support.tui.documents import NOON, STATE_DIR

if TYPE_CHECKING:
    from textual.pilot import Pilot

WAIT_S = 30.0


class StillTui(JupiterTui):
    """Hears only what a test tells it, at a time that stands still: always the same picture."""

    def __init__(self, **options) -> None:
        super().__init__(Options(STATE_DIR, **options), clock=lambda: NOON)

    def _listen(self) -> None:
        pass

    def _listen_to(self, wanted) -> None:
        pass


def shown(app: JupiterTui) -> str:
    """Return the text on the screen that is in front."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def settled(pilot: "Pilot") -> str:
    """Return the text on the screen once nothing moves any more: panels draw for their new size."""
    before, text = "", shown(pilot.app)
    while text != before:
        await pilot.pause()
        await pilot.pause()
        before, text = text, shown(pilot.app)
    return text


async def until(pilot: "Pilot", is_so: Callable[[str], bool]) -> str:
    """Return the text on the screen as soon as it is as it should be."""
    text = shown(pilot.app)
    try:
        async with asyncio.timeout(WAIT_S):
            while not is_so(text):
                await pilot.pause(0.02)
                text = shown(pilot.app)
    except TimeoutError:
        raise AssertionError(f"the screen stays at:\n{text}") from None
    return text
