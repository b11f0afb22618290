"""Results in a folder: a long measurement can be done in pieces, and told in one table.

Owns their files: one for each result, which says all that it depends on and is found by that. What
was measured with other settings is another result. Doesn't know what is measured; that the code is
the same is for people to see to.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jupiterd.cycle.base.plain_text import hash_of
from tests.bench.islands.contestants import Result

HASH_DIGITS = 12


@dataclass(frozen=True)
class KeptResults:
    """What contestants have reached; without a folder, nothing is kept."""

    folder: Path | None = None

    def found(self, name: str, settings: Mapping[str, Any]) -> Result | None:
        """Return what came of exactly these settings; None if nobody knows."""
        path = self._path(name, settings)
        if path is None or not path.exists():
            return None
        return Result(**json.loads(path.read_text(encoding="utf-8"))["result"])

    def keep(self, name: str, settings: Mapping[str, Any], result: Result) -> None:
        """Lay down what came of these settings, whole or not at all."""
        if path := self._path(name, settings):
            content = {"name": name, "settings": settings, "result": asdict(result)}
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
            part.replace(path)

    def _path(self, name: str, settings: Mapping[str, Any]) -> Path | None:
        if self.folder is None:
            return None
        hashed = hash_of({"name": name, "settings": settings})[:HASH_DIGITS]
        return self.folder / f"{'-'.join(name.replace(',', '').split())}-{hashed}.json"
