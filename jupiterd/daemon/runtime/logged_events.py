"""How often each event was logged as a warning or an error.

Owns the counting, and its bound. Doesn't know what any event means, or who asks.
"""

import logging
from collections import Counter

MAX_EVENTS = 200
"""Of different names; those of an event are few, but others have a hand in what is logged."""
MAX_NAME_CHARACTERS = 60

OTHERS = "others"


class LoggedEvents(logging.Handler):
    """Counts what passes by at warning level and above; writes nothing."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.counts: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Count one line, by its event: the message as it stands in the code."""
        name = str(record.msg)[:MAX_NAME_CHARACTERS]
        is_known = name in self.counts or len(self.counts) < MAX_EVENTS
        self.counts[name if is_known else OTHERS] += 1
