"""What is kept of real pages that somebody labelled, and of pages that are written here.

Pages pass as in a cycle: collected from a folder, cleaned, and united, which finds duplicates.
Beside that stands datatrove on the same plain text, and how much of a kept page's prose and code is
left. JUPITER_PAGES names a folder with `labels.tsv` (path, label keep or drop, reason); without it
`shared/corpora` beside the repository is taken, where it exists. Nothing of it is stored.
"""

import csv
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.domain.data_sources import FolderSource
from jupiterd.cycle.text_rules.document_kind import DocumentForm
from jupiterd.cycle.text_rules.plain_rendering import plain_rendering
from jupiterd.workers.data.clean.clean_batch import TextRules, clean
from jupiterd.workers.data.clean.drops import read_drops
from jupiterd.workers.data.collect.collect_source import CollectParams, Places, collect
from jupiterd.workers.data.collectors.kinds import open_collector
from jupiterd.workers.data.dedup.merge_batches import RoundBatches, unite
from jupiterd.workers.samples.sample_file import read_samples
from tests.bench.data.filters import datatrove_python, theirs
from tests.bench.data.prose import Document
from tests.bench.data.written_pages import Page, written_pages

SHARED = Path(__file__).resolve().parents[4] / "shared" / "corpora"
LANGUAGES = ("en", "es")
WRITTEN, SEED = 160, 1
MIN_KEPT, MAX_DROPPED_KEPT, MIN_SURVIVING = 95.0, 20.0, 90.0

_FENCE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})[ \t]*\{?\.?([\w+#-]*)")
_OUTPUT = frozenset({"", "console", "text", "txt", "output", "log", "shell-session", "html"})
_NO_PROSE = re.compile(
    r"^\s*(?:#|\||<|\{|:::|===|!!!|\?\?\?|///|--|\[[^\]]+\]:|\.\. |[*-] \[[^\]]*\]\([^)]*\)\s*$)"
)
_TARGET = re.compile(r"\]\([^)]*\)|\]\[[^\]]*\]|<[^>]*>|https?://\S+|\{[^}]*\}|!\[[^\]]*\]")
_WORD = re.compile(r"\w+")
_RUN = 3


@dataclass(frozen=True)
class Outcome:
    """What became of the pages of one language."""

    pages: Sequence[Page]
    kept: dict[str, Sample]
    """Name of a page -> what is trained on."""
    reasons: dict[str, str]
    """Name of a dropped page -> why."""

    def share(self, *, is_good: bool) -> float:
        """Return how many of a hundred with this label are kept."""
        labelled = [page.name for page in self.pages if page.is_good is is_good]
        return 100 * sum(name in self.kept for name in labelled) / max(1, len(labelled))

    def surviving(self) -> float:
        """Return the share of the prose and code of kept good pages that is trained on."""
        parts = [
            (_surviving(page.text, self.kept[page.name].text))
            for page in self.pages
            if page.is_good and page.name in self.kept
        ]
        found, whole = (sum(one) for one in zip(*parts, strict=True))
        return 100 * found / max(1, whole)


def labelled(folder: Path, language: str) -> list[Page]:
    """Return the labelled pages of a language that nobody could argue about."""
    with (folder / "labels.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [
        Page(
            row["path"], (folder / row["path"]).read_text(encoding="utf-8"), row["label"] == "keep"
        )
        for row in rows
        if row["path"].startswith(f"{language}/") and not row["reason"].startswith("borderline")
    ]


def outcome(pages: Sequence[Page], language: str) -> Outcome:
    """Collect, clean and unite the pages as a cycle does."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for page in pages:
            path = root / "pages" / page.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page.text, encoding="utf-8")
        _collected(root, language)
        clean([root / "train", root / "holdout"], root / "cleaned", TextRules(language))
        batches = RoundBatches([root / "cleaned" / "clean"], [root / "cleaned" / "dropped"], [])
        unite(batches, root / "united", language)
        kept = {_name(one): one for one in read_samples(root / "united" / "kept")}
        dropped = read_drops(root / "united" / "dropped")
        return Outcome(pages, kept, {_name(one): str(why.reason) for one, why in dropped})


def _collected(root: Path, language: str) -> None:
    source = FolderSource(kind="folder", path=str(root / "pages"), license="CC0-1.0")
    params = CollectParams(0.05, "salt", language, "2026-01-01T00:00:00Z", "pages")
    (root / "scratch").mkdir()
    collect(open_collector(source), Places(root, root / "scratch"), params)


def _name(sample: Sample) -> str:
    return sample.source_uri.partition("/")[2]


def _surviving(before: str, after: str) -> tuple[int, int]:
    """Return bytes of words of prose and explained code that are left, and all that there were.

    A word is left where a run of three words that it stands in is.
    """
    left = {*_runs(_WORD.findall(after)), *_runs(_words(after))}
    found = whole = 0
    for words in _worth_keeping(before):
        is_left = [False] * len(words)
        for start, run in enumerate(_runs(words)):
            if run in left:
                is_left[start : start + _RUN] = [True] * _RUN
        sizes = [len(word.encode()) for word in words]
        whole += sum(sizes)
        found += sum(size for size, one in zip(sizes, is_left, strict=True) if one)
    return found, whole


def _words(text: str) -> list[str]:
    return _WORD.findall(_TARGET.sub(" ", text))


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(_RUN)), strict=False)


def _worth_keeping(text: str) -> Iterator[list[str]]:
    """Yield the words of each line of prose, four or more, and of each line of labelled code."""
    code: str | None = None
    for line in text.splitlines():
        if fence := _FENCE.match(line):
            code = fence[1].lower() if code is None else None
        elif code is not None:
            words = _WORD.findall(line)
            if code not in _OUTPUT and len(words) >= _RUN and not _NO_PROSE.match(line):
                yield words
        elif not _NO_PROSE.match(line) and len(words := _words(line)) >= _RUN + 1:
            yield words


def _plain(page: Page, sample: Sample | None) -> str:
    text = page.text if sample is None else sample.text
    form = DocumentForm.parse("documentation")
    return plain_rendering(text, form)


def _datatrove(found: Outcome, language: str) -> str:
    python = datatrove_python()
    if python is None:
        return "not run"
    texts = [Document(page.name, _plain(page, found.kept.get(page.name))) for page in found.pages]
    reasons = theirs(python, f"rules-{language}", texts)[1]
    shares: list[str] = []
    for is_good in (True, False):
        mine = [
            why for page, why in zip(found.pages, reasons, strict=True) if page.is_good is is_good
        ]
        shares.append(f"{100 * mine.count('') / max(1, len(mine)):.1f} %")
    return f"keep {shares[0]}, drop {shares[1]}"


def _print(name: str, found: Outcome, language: str) -> None:
    good, bad = found.share(is_good=True), found.share(is_good=False)
    left = found.surviving()
    is_reached = good >= MIN_KEPT and bad <= MAX_DROPPED_KEPT and left >= MIN_SURVIVING
    counts = Counter(page.is_good for page in found.pages)
    print(
        f"pages, {name}, {language}: kept {good:.1f} % of {counts[True]} labelled keep "
        f"(goal {MIN_KEPT:g}), {bad:.1f} % of {counts[False]} labelled drop (goal at most "
        f"{MAX_DROPPED_KEPT:g}), {left:.1f} % of the bytes of prose and code left (goal "
        f"{MIN_SURVIVING:g}): {'reached' if is_reached else 'MISSED'}"
    )
    print(f"  datatrove on the same plain text: {_datatrove(found, language)}")
    wrong = [page for page in found.pages if page.is_good is not (page.name in found.kept)]
    for page in wrong:
        what = (
            "is kept" if page.name in found.kept else found.reasons.get(page.name, "not collected")
        )
        print(f"  {'keep' if page.is_good else 'drop'} {page.name}: {what}")


def print_pages() -> None:
    """Measure and print."""
    folder = Path(os.environ.get("JUPITER_PAGES", SHARED))
    if not (folder / "labels.tsv").exists():
        print(f"pages, real: not run, there is no {folder}/labels.tsv")
    for language in LANGUAGES:
        if (folder / "labels.tsv").exists():
            _print("real", outcome(labelled(folder, language), language), language)
        made = list(written_pages(WRITTEN, SEED, language))
        _print("written here", outcome(made, language), language)
