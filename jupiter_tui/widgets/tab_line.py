"""The line that names the screens, for those who have a mouse."""

from textual import events

from jupiter_tui.drawings.primitives.lines import Lines
from jupiter_tui.drawings.tabs import tab_at, tabs
from jupiter_tui.model.scene import Scene
from jupiter_tui.widgets.panel import Panel


class TabLine(Panel):
    """Names the screens; a click on one brings it to the front, as its key does."""

    def __init__(self, front: str) -> None:
        """Take the name of the screen that is in front."""
        super().__init__("tabs", self._tabs, fades=False)
        self._front = front

    async def on_click(self, event: events.Click) -> None:
        """Bring a screen to the front."""
        offset = event.get_content_offset(self)
        key = None if offset is None else tab_at(offset.x)
        if key is not None:
            await self.app.run_action(key.action)

    def _tabs(self, _scene: Scene, _width: int, _height: int) -> Lines:
        return (tabs(self._front),)
