"""What a finished phase is told as: a count, its unit and a sentence.

Owns the words. Doesn't know how the counts came about.
"""

import math
from collections.abc import Mapping

from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.data.reason_words import reason_words
from jupiterd.cycle.questions.round_grades import ASKED, RIGHT
from jupiterd.formats import counted

_UNITS: Mapping[Phase, tuple[str, str]] = {
    Phase.COLLECT: ("documents", "documents"),
    Phase.GENERATE: ("samples", "samples"),
    Phase.FILTER: ("kept", "samples"),
    Phase.PACK: ("sequences", "sequences"),
    Phase.TRAIN: ("steps", "steps"),
    Phase.EVALUATE: ("texts", "texts"),
    Phase.GATE: ("documents", "documents"),
}
"""Phase -> (the count that people see, its unit)."""

_DETAILS: Mapping[Phase, str] = {
    Phase.COLLECT: "{bytes:byte}",
    Phase.GENERATE: "{samples:sample} from {prompts:prompt}, {tokens:token}",
    Phase.PACK: "{tokens:token} from {documents:sample}, {synthetic_documents} of them synthetic",
}
"""Phase -> what else is told, from its counts."""

MOST_REASONS = 4
"""So many are named in a sentence; `data samples --dropped` lists them all."""

_HELD_OUT = (
    " in {clusters:cluster}; held out {holdout_documents:document} in {holdout_clusters:cluster}"
)
"""Of text that was collected, once a part of it is held out."""

_DATA_SET = (
    "{documents:document} of {bytes:byte}, {vocab_size:,} different tokens; "
    "held out {holdout_documents:document} of {holdout_bytes:byte}"
)
"""Of text that was made into a data set."""

_CONVERSATIONS = (
    "; {conversations:,} of them as conversations, and the loss counts {counted_tokens:token}"
)
"""Of a round that is packed for a model that is talked to."""

UNJUDGED_COUNT = "quality_unjudged"
"""In the counts of filtering: texts were to be judged by quality, and the reference has none."""

SILENT_COUNT = "silent:"
"""In the counts of collecting, before a host: so many of its pages couldn't be had, since it
stopped answering."""

OTHER_FILES_COUNT = "other_files"
"""In the counts of reading: files that are no documents, which count as nothing left out."""

_FIRST_SKIPPED = "first skipped "
"""In the counts of reading, before a reason and the name of the first that was left out for it."""

_SKIPPED = "; files skipped (not UTF-8, unreadable, empty, or over 8 MiB): {skipped}"


def first_skipped_count(reason: str, name: str) -> str:
    """Return the name of the count that tells the first thing left out for a reason."""
    return f"{_FIRST_SKIPPED}{reason}: {name}"


def first_skipped(counts: Mapping[str, float]) -> Mapping[str, str]:
    """Return for each reason the name of what was left out for it first."""
    found: dict[str, str] = {}
    for name in sorted(counts):
        if name.startswith(_FIRST_SKIPPED):
            reason, _, first = name.removeprefix(_FIRST_SKIPPED).partition(": ")
            found.setdefault(reason, first)
    return found


def held_out_clusters(clusters: int) -> str:
    """Return what is held out as wholes, so that nothing like it is trained on."""
    if clusters == 1:
        return "one whole folder, file or row"
    return f"{clusters:,} whole folders, files or rows"


def total_counts(parts: list[Mapping[str, float]]) -> dict[str, float]:
    """Return the sums of the counts of a phase's items; what is no number counts as nothing."""
    sums: dict[str, float] = {}
    for counts in parts:
        for name, value in counts.items():
            sums[name] = sums.get(name, 0) + (value if math.isfinite(value) else 0)
    return sums


def summarise(phase: Phase, counts: Mapping[str, float]) -> tuple[int, str, str]:
    """Return (count, unit, detail) of a finished phase."""
    key, unit = _UNITS[phase]
    if phase is Phase.EVALUATE and key not in counts:  # recorded by a version that counted less
        key = unit = "scores" if "scores" in counts else "documents"
    if _is_data_set(phase, counts):
        key, unit = "tokens", "tokens"
    return int(counts.get(key, 0)), unit, _detail(phase, counts)


def _detail(phase: Phase, counts: Mapping[str, float]) -> str:
    if phase is Phase.FILTER:
        return _filter_detail(counts)
    if phase is Phase.EVALUATE:
        return _evaluate_detail(counts)
    whole = _Zeros({name: _Amount(value) for name, value in counts.items()})
    text = _template(phase, counts).format_map(whole)
    if refused := _listed(counts, "refused."):
        text += f"; refused: {refused}"
    if phase is Phase.GENERATE and counts.get("kept"):
        text += f"; here already: {counted(int(counts['kept']), 'answer')}"
    if replaced := _listed(counts, "removed."):
        text += f"; replaced in the text: {replaced}"
    if silent := _listed(counts, SILENT_COUNT):
        text += f"; stopped answering, and the next round asks again (pages): {silent}"
    if dropped := _listed(counts, "dropped.", MOST_REASONS):
        text += f"; dropped {whole['dropped']} ({dropped})"
    if others := whole[OTHER_FILES_COUNT]:
        text += f"; {counted(others, 'other file')} beside them: images, style sheets and the like"
    if reasons := _skipped(counts):
        rows = whole["skipped_rows"]
        of_rows = f"; rows skipped: {rows}" if rows else ""
        return f"{text}; left out {whole['skipped']} ({reasons}){of_rows}"
    return text + (_SKIPPED.format_map(whole) if whole["skipped"] else "")


def _template(phase: Phase, counts: Mapping[str, float]) -> str:
    if _is_data_set(phase, counts):
        clusters = int(counts.get("holdout_clusters", 0))
        return _DATA_SET + (f", {held_out_clusters(clusters)}" if clusters else "")
    if phase is Phase.PACK and counts.get("conversations"):
        return _DETAILS[phase] + _CONVERSATIONS
    is_parted = phase is Phase.COLLECT and "holdout_documents" in counts
    return _DETAILS.get(phase, "") + (_HELD_OUT if is_parted else "")


def _is_data_set(phase: Phase, counts: Mapping[str, float]) -> bool:
    """Say whether this is a data set by itself: a round's is packed for one length of sequence."""
    return phase is Phase.PACK and "sequences" not in counts


class _Amount(int):
    """A count whose format may be the noun that it counts, which then agrees with it."""

    def __format__(self, spec: str) -> str:
        """Return `2 documents` for `{:document}`; of another format what a number is."""
        is_noun = len(spec) > 1 and spec.replace(" ", "").isalpha()
        return counted(int(self), spec) if is_noun else super().__format__(spec)


class _Zeros(dict[str, int]):
    """Counts of which those that are absent are nought."""

    def __missing__(self, name: str) -> int:
        return _Amount(0)


def _evaluate_detail(counts: Mapping[str, float]) -> str:
    documents, scores = int(counts.get("documents", 0)), int(counts.get("scores", 0))
    if not scores:
        return ""
    models = scores // max(1, documents)
    under_whom = _SCORED_UNDER.get(models, "under candidate, incumbent and generator")
    cloze = f"; asked {int(counts.get('gaps', 0)):,} times which of several words fits a gap"
    gaps = cloze if counts.get("gaps") else ""
    own = ""
    if RIGHT in counts:
        own = f"; your own questions: {int(counts[RIGHT])} of {int(counts.get(ASKED, 0))} right"
    return f"{counted(documents, 'document')}, each scored {under_whom}{gaps}{own}"


_SCORED_UNDER = {1: "under the candidate", 2: "under candidate and incumbent"}


def _filter_detail(counts: Mapping[str, float]) -> str:
    reasons = _listed(counts, "dropped.", MOST_REASONS)
    return (
        f"kept {counts.get('kept_real', 0):.0f} real and "
        f"{counts.get('kept_synthetic', 0):.0f} synthetic, "
        f"dropped {counts.get('dropped', 0):.0f}"
        + (f" ({reasons})" if reasons else "")
        + ("; quality isn't judged: its reference has no text" * (UNJUDGED_COUNT in counts))
    )


def _skipped(counts: Mapping[str, float]) -> str:
    """Return how much was left out for which reason, and the first of each; greatest first."""
    firsts = first_skipped(counts)
    ranked = sorted(
        (-count, name.removeprefix("skipped."))
        for name, count in counts.items()
        if name.startswith("skipped.")
    )
    return ", ".join(
        f"{reason_words(reason)} {-count:.0f}" + (f": {firsts[reason]}" if reason in firsts else "")
        for count, reason in ranked
    )


def _listed(counts: Mapping[str, float], prefix: str, most: int | None = None) -> str:
    """Return the counts whose names begin so, the greatest first; beyond `most` their sum."""
    found = [
        (name.removeprefix(prefix), count)
        for name, count in counts.items()
        if name.startswith(prefix)
    ]
    words = str if prefix == SILENT_COUNT else reason_words
    ranked = sorted(found, key=lambda pair: (-pair[1], pair[0]))
    named, left = (ranked, []) if most is None else (ranked[:most], ranked[most:])
    rest = [f"others {sum(count for _, count in left):.0f}"] if left else []
    return ", ".join([*(f"{words(name)} {count:.0f}" for name, count in named), *rest])
