"""Compare architectures and write down what came of it.

    python -m tests.bench.models torch        all that transformers has, on torch
    python -m tests.bench.models mlx [NAME..] tiny models on both engines; of all, or of these
    python -m tests.bench.models tables       the files alone, from what was compared before

Owns the files that follow from it: docs/models.md, and the tables that commands look in.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.models import results, table
from tests.bench.models.cases import NAMED, OTHERS, cases_of

ROOT = Path(__file__).resolve().parents[3]
TRAINING = ROOT / "jupiterd" / "cycle" / "training"


def main(what: str, names: Sequence[str]) -> None:
    """Do what is asked for."""
    if what == "torch":
        _sweep_torch()
        return
    if what == "mlx":
        for architecture in names or (*NAMED, *OTHERS):
            _compare(architecture)
    found = results.load()
    (TRAINING / "mlx_proven.py").write_text(table.proven_module(found), encoding="utf-8")
    (ROOT / "docs" / "models.md").write_text(table.page(found), encoding="utf-8")


def _sweep_torch() -> None:
    from tests.bench.models.torch_sweep import is_tied_by_default, known, tried

    found = [tried(architecture) for architecture in known()]
    for each in found:
        print(f"{each.architecture:24} leak {each.leak:.1e}  {each.error}", flush=True)
    tied = [architecture for architecture in known() if is_tied_by_default(architecture)]
    target = TRAINING / "known_architectures.py"
    target.write_text(table.known_module(found, tied), encoding="utf-8")


def _compare(architecture: str) -> None:
    from tests.bench.models.parity import compared

    found = [compared(case) for case in cases_of(architecture)]
    for each in found:
        print(f"{each.title:40} {each.logits:.1e} {each.losses:.1e} {each.error}", flush=True)
    results.keep(architecture, found)


main(sys.argv[1] if sys.argv[1:] else "tables", sys.argv[2:])
