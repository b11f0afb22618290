"""The cluster: who is here, and what is wrong."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from jupiter_tui.drawings.health import health
from jupiter_tui.drawings.nodes import LEGEND, SORTS, nodes
from jupiter_tui.keys import FILTER, SORT, Key, bindings
from jupiter_tui.list_panel import ListPanel
from jupiter_tui.panel import Panel
from jupiter_tui.screens.dashboard import DashboardScreen


class ClusterScreen(DashboardScreen):
    """Who is here, and what is wrong."""

    AUTO_FOCUS = "#nodes"
    KEYS: ClassVar[Sequence[Key]] = (FILTER, SORT)
    BINDINGS: ClassVar[list[BindingType]] = bindings(KEYS)

    def body(self) -> ComposeResult:
        """Return the table of nodes above the health."""
        yield ListPanel("nodes", nodes, title="Nodes", legend=LEGEND, sorts=SORTS)
        yield Panel("health", health, title="Health")
