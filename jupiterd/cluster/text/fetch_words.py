"""How far a model is that a command fetches from the hub, in words.

Pure. Owns the words; jupiterctl and the dashboard say the same. Doesn't know who fetches.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.formats import plain, size


def fetch_words(row: Mapping[str, Any]) -> str:
    """Return a fetch of the status document, such as `team/prose: 1.2 MiB of 4.0 MiB, cut-off`."""
    done, total = row.get("done") or 0, row.get("total") or 0
    text = f"{plain(row.get('name'))}: {size(done)} of {size(total)}"
    if row.get("state") != "fetching":
        return f"{text}, {plain(row.get('state'))}"
    return f"{text}, {size(row.get('bytes_per_s') or 0)}/s"
