"""Keys as Textual binds them.

Owns nothing but the translation. Doesn't know which keys there are.
"""

from collections.abc import Sequence

from textual.binding import Binding, BindingType

from jupiter_tui.widgets.keys import OPEN, SCREENS, Key


def bindings(keys: Sequence[Key]) -> list[BindingType]:
    """Return what Textual binds for these keys."""
    return [
        Binding(key.names, key.action, key.label, show=not (key.is_rare or key in SCREENS))
        for key in keys
        if key is not OPEN
    ]
