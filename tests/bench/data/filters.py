"""Documents a second and core of our filters, beside datatrove's on the same documents.

Both sides are one process each and take turns, and the share of documents on which they agree is
printed with the rules that don't. The datatrove beside us is installed in an environment of its
own, which is kept for the next time.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.text_rules.prose_rules import judge_prose
from jupiterd.workers.data.dedup.near_duplicates import NearDuplicates
from tests.bench.data.prose import Document, made, near_twins, real
from tests.bench.figure import Figure, Goal, line

DATATROVE = ("datatrove[processing]==0.6.0", "spacy==3.8.18", "xxhash==3.5.0")
"""Its rules cut words with spaCy, and its MinHash breaks with a newer xxhash."""

ENVIRONMENT = Path(tempfile.gettempdir()) / "jupiter-bench-datatrove-0.6.0"
INSTALL_TIMEOUT_S = 900
JUDGE_TIMEOUT_S = 1800
SEED = 1

SPEED = (Goal(0.5, 2.0, at_least=True),)
AGREEMENT = (Goal(0.5, 99.0, at_least=True),)

Judge = Callable[[Sequence[Document]], list[str]]


def documents(size: int) -> list[Document]:
    """Return as many made documents and at most as many real ones."""
    return [*made(size, SEED), *islice(real(), size)]


def rules(found: Sequence[Document]) -> list[str]:
    """Return our reason for each document, few-letters left out; empty where it is kept."""
    off = frozenset({DropReason.FEW_LETTERS})
    return [judge_prose(one.text, "en", off).reason or "" for one in found]


def few_letters(found: Sequence[Document]) -> list[str]:
    """Return which documents that rule drops; it counts what stands between spaces."""
    off = frozenset(DropReason) - {DropReason.FEW_LETTERS}
    return [judge_prose(one.text, "en", off).reason or "" for one in found]


def near(found: Sequence[Document]) -> list[str]:
    """Return which documents are near-duplicates of another one that is kept."""
    index = NearDuplicates(is_code=False)
    for one in found:
        index.add(one.text)
    return ["" if first == own else "near-duplicate" for own, first in enumerate(index.groups())]


def datatrove_python() -> Path | None:
    """Return the Python of an environment with datatrove; None where there can't be one."""
    python = ENVIRONMENT / "bin" / "python"
    if (ENVIRONMENT / ".installed").exists():
        return python
    try:
        for command in (
            (sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)),
            (str(python), "-m", "pip", "install", "--quiet", *DATATROVE),
        ):
            subprocess.run(command, check=True, timeout=INSTALL_TIMEOUT_S, capture_output=True)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"  datatrove can't be installed: {error}")
        return None
    (ENVIRONMENT / ".installed").touch()
    return python


def theirs(python: Path, job: str, found: Sequence[Document]) -> tuple[float, list[str]]:
    """Return datatrove's seconds and reasons."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump([(one.id, one.text) for one in found], file)
        file.flush()
        script = str(Path(__file__).with_name("datatrove_side.py"))
        command = (str(python), script, job, file.name)
        done = subprocess.run(
            command, check=True, timeout=JUDGE_TIMEOUT_S, capture_output=True, text=True
        )
    told = json.loads(done.stdout)
    return float(told["seconds"]), told["reasons"]


def ours(judge: Judge, found: Sequence[Document]) -> tuple[float, list[str]]:
    """Return our seconds and reasons."""
    judge(found[:10])  # as theirs, which loads its tokenizer before its clock starts
    began_s = time.process_time()
    reasons = judge(found)
    return time.process_time() - began_s, reasons


def compare(job: str, judge: Judge, found: Sequence[Document], trials: int) -> None:
    """Print how fast both are, and where they disagree."""
    python = datatrove_python()
    speeds: list[float] = []
    same: list[float] = []
    for _ in range(trials):
        our_s, our_reasons = ours(judge, found)
        print(f"  {job}: ours {len(found) / our_s:,.0f} documents/s", flush=True)
        if python is None:
            continue
        their_s, their_reasons = theirs(python, job, found)
        print(f"  {job}: datatrove {len(found) / their_s:,.0f} documents/s", flush=True)
        speeds.append(their_s / our_s)
        same.append(100 * _agreement(our_reasons, their_reasons))
    if python is None:
        print(f"filters, {job}, against datatrove: not run")
        return
    _print_disagreements(our_reasons, their_reasons)
    print(line(Figure(f"filters, {job}: speed over datatrove's", "x", SPEED, _never), speeds))
    print(line(Figure(f"filters, {job}: same verdicts", "%", AGREEMENT, _never), same))


def print_few_letters(found: Sequence[Document]) -> None:
    """Print where the rule differs: datatrove counts each mark as a word, the paper doesn't."""
    python = datatrove_python()
    if python is None:
        print("filters, few-letters against datatrove: not run")
        return
    pairs = list(
        zip(found, few_letters(found), theirs(python, "few-letters", found)[1], strict=True)
    )
    differs = [(one, mine) for one, mine, other in pairs if bool(mine) != bool(other)]
    print(f"filters, few-letters: differs in {len(differs)} of {len(found)} documents")
    by_side = Counter("ours" if mine else "datatrove's" for _, mine in differs)
    for side, times in sorted(by_side.items()):
        first = [one.id for one, mine in differs if bool(mine) is (side == "ours")]
        print(f"  {times} dropped by {side} alone: {', '.join(first[:5])}")


async def _never() -> float:
    await asyncio.sleep(0)
    raise AssertionError("both sides are measured together")


def _agreement(one: Sequence[str], other: Sequence[str]) -> float:
    return sum(bool(a) == bool(b) for a, b in zip(one, other, strict=True)) / len(one)


def _print_disagreements(one: Sequence[str], other: Sequence[str]) -> None:
    pairs = zip(one, other, strict=True)
    found = Counter((a or "kept", b or "kept") for a, b in pairs if bool(a) != bool(b))
    for (our, their), times in found.most_common(10):
        print(f"  {times} documents: ours {our}, datatrove {their}")


def filters(trials: int, size: int) -> None:
    """Compare the rules, and near-duplicates apart."""
    compare("rules", rules, documents(size), trials)
    print_few_letters(documents(size))
    compare("near", near, list(near_twins(size, SEED)), trials)
