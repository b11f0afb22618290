"""The cluster: who is here, how they are joined, and what is wrong."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from jupiter_tui.actions import cycle_actions, machine_actions
from jupiter_tui.actions.action import Action, Ask
from jupiter_tui.drawings.health import health
from jupiter_tui.drawings.nodes import LEGEND, SORTS, nodes
from jupiter_tui.drawings.topology import LINKS, topology
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiter_tui.screens.dashboard import DashboardScreen
from jupiter_tui.screens.node import NodeScreen
from jupiter_tui.widgets.key_bindings import bindings
from jupiter_tui.widgets.keys import FILTER, OPEN, SORT, Key
from jupiter_tui.widgets.list_panel import ListPanel
from jupiter_tui.widgets.panel import Panel


class ClusterScreen(DashboardScreen):
    """Nodes, links and health."""

    PLACE = "cluster"
    AUTO_FOCUS = "#nodes"
    KEYS: ClassVar[Sequence[Key]] = (
        OPEN,
        FILTER,
        SORT,
        Key("A", "A", "request('approve')", "Approve", "lets in who waits, or trusts who walked in",
            changes=True),
        Key("D", "D", "request('drain')", "Drain", "gives the chosen node no new work",
            changes=True),
        Key("R", "R", "request('resume')", "Resume", "lets it work again", changes=True),
        Key("X", "X", "request('remove')", "Remove", "takes the chosen node out", changes=True),
        Key("H", "H", "dismiss_alarms", "Dismiss", "ends the alarms that health shows",
            changes=True, is_rare=True),
        Key("O", "O", "let_in", "Open", "lets new machines in for ten minutes", changes=True),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS)

    def __init__(self, scene: Callable[[], Scene], ask: Ask) -> None:
        """Take what returns the present scene, and what confirms and carries out changes."""
        super().__init__(scene)
        self._ask_and_do = ask

    @property
    def sources(self) -> Sequence[Source]:
        """Return the links."""
        return (LINKS,)

    def body(self) -> ComposeResult:
        """Return the table of nodes above the links and the health."""
        yield ListPanel("nodes", nodes, title="Nodes", legend=LEGEND, sorts=SORTS)
        yield Panel("topology", topology, title="Links")
        yield Panel("health", health, title="Health")

    def on_list_panel_opened(self, event: ListPanel.Opened) -> None:
        """Show a node."""
        self.app.push_screen(NodeScreen(self._present, event.key))

    def action_request(self, what: str) -> None:
        """Ask for confirmation of a command about the chosen node, by its verb."""
        panel = self.list_panel
        document = self._present().view.document
        for node in document.get("nodes") or ():
            if panel is not None and str(node.get("id")) == panel.selected:
                self._ask(what, node)

    def _ask(self, what: str, node: Mapping[str, Any]) -> None:
        objection, action = machine_actions.objection(what, node), _ACTIONS[what](node)
        if objection or action is None:
            self.notify(objection, severity="warning", markup=False)
        else:
            self._ask_and_do(action)

    def action_let_in(self) -> None:
        """Ask whether new machines may join."""
        self._ask_and_do(machine_actions.OPEN_WINDOW)

    def action_dismiss_alarms(self) -> None:
        """Ask whether people have seen all that health shows."""
        action = cycle_actions.dismiss_all(self._present().view.document.get("health") or ())
        if action is None:
            self.notify("health shows nothing that can be dismissed", markup=False)
        else:
            self._ask_and_do(action)


_ACTIONS: Mapping[str, Callable[[Mapping[str, Any]], Action | None]] = {
    "approve": machine_actions.approve,
    "drain": machine_actions.drain,
    "resume": machine_actions.resume,
    "remove": machine_actions.remove,
}
