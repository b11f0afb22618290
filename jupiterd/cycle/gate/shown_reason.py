"""A verdict's reason as people read it, beside the bits per byte of two models.

Pure. Owns one word more than the record has: verdicts are decided again to the last byte, so what
is recorded keeps its words.
"""

import re

_IMPROVEMENT = re.compile(r"(improvement [+-]\d+\.\d+ bits per byte)(, between)")


def shown_reason(reason: str) -> str:
    """Return the reason, and that its improvement is a mean over documents.

    The models' own figures are over all bytes together, so the improvement isn't their difference.
    """
    return _IMPROVEMENT.sub(r"\1 a document\2", reason)
