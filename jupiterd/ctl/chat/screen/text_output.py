"""The standard output as something to show answers on.

Owns finding out how large it is and what it can show. Doesn't know what is shown.
"""

import os
import shutil
import sys

from jupiterd.ctl.chat.screen.answer_screen import TextOutput
from jupiterd.ctl.output.console import Console


def text_output(console: Console) -> TextOutput:
    """Return the output as it is now: a terminal may have another size with each answer."""
    size = shutil.get_terminal_size()
    return TextOutput(
        sys.stdout,
        size.columns,
        size.lines,
        is_terminal=console.is_terminal,
        has_styles=console.is_terminal and not os.environ.get("NO_COLOR"),
        line="\u2502" if console.can_draw else "|",
    )
