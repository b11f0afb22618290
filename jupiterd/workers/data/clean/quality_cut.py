"""Which of a round's texts are left out because they read least like the reference.

Owns what is counted and what is judged. The real texts of the sources that the domain names are the
reference, which is never judged. Of the other real texts a share is kept; generated ones meet the
same bound, and shape it in no way. Doesn't know files, or how a score comes about.

Texts are numbered by id, and shown in that order: all to `count`, then those that would be kept to
`score`; after that it can be asked about each. Takes 9 bytes for each text, and while the bound is
drawn about 190 more for each that is judged.
"""

import math
from array import array
from collections.abc import Sequence
from dataclasses import replace

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.domain.domain import Quality
from jupiterd.cycle.domain.filters import SCORE_DIGITS
from jupiterd.cycle.domain.quality_options import QUALITY, Likeness, WordCounts, lowest_retained
from jupiterd.cycle.rounds.phase_summary import UNJUDGED_COUNT

_UNJUDGED = math.nan


class QualityCut:
    """Decides on one text after the other; without settings it judges none."""

    def __init__(self, settings: Quality | None, language: str) -> None:
        self._settings = settings
        self._language = language
        self._reference, self._rest = WordCounts(), WordCounts()
        self._likeness: Likeness | None = None
        self._scores = array("d")
        self._is_real = bytearray()
        self._lowest = (-math.inf, 0)

    def is_reference(self, twins: Sequence[Sample]) -> bool:
        """Say whether a text is one of the reference, whoever else has it."""
        like = () if self._settings is None else self._settings.like
        return any(twin.kind == "real" and twin.source in like for twin in twins)

    def count(self, twins: Sequence[Sample]) -> None:
        """Count the words of a text that may be trained on."""
        if self._settings is None or all(twin.kind != "real" for twin in twins):
            return
        side = self._reference if self.is_reference(twins) else self._rest
        side.add(twins[0].text, self._language)

    def begin_scoring(self) -> bool:
        """Say whether there is anything to judge, and what to judge it by; all were counted."""
        if self._reference.total and self._rest.total:
            self._likeness = Likeness(self._reference, self._rest)
        return self._likeness is not None

    def score(self, twins: Sequence[Sample], *, is_retained: bool) -> None:
        """Score the next text, unless it is left out anyway."""
        is_judged = is_retained and self._likeness is not None and not self.is_reference(twins)
        self._scores.append(self._score(twins[0].text) if is_judged else _UNJUDGED)
        self._is_real.append(twins[0].kind == "real")

    def _score(self, text: str) -> float:
        return 0.0 if self._likeness is None else self._likeness.score(text, self._language)

    def end_scoring(self) -> None:
        """Draw the bound; all were scored."""
        if self._settings is not None:
            real = (
                (score, number)
                for number, score in enumerate(self._scores)
                if self._is_real[number] and not math.isnan(score)
            )
            self._lowest = lowest_retained(real, self._settings.keep_share)

    def reason(self, number: int) -> DropReason | None:
        """Return why a text is left out; None: it stays."""
        if self._likeness is None or math.isnan(score := self._scores[number]):
            return None
        return DropReason.QUALITY if (score, number) < self._lowest else None

    def marked(self, number: int, sample: Sample) -> Sample:
        """Return the sample with its score, if it has one."""
        if self._likeness is None or math.isnan(score := self._scores[number]):
            return sample
        scores = {**sample.filter_scores, "quality": round(score, SCORE_DIGITS)}
        return replace(sample, filters=f"{sample.filters} {QUALITY}", filter_scores=scores)

    def counts(self) -> dict[str, float]:
        """Return what is told beside the reasons: that nothing could be judged."""
        is_missing = self._settings is not None and not self._reference.total
        return {UNJUDGED_COUNT: 1} if is_missing else {}
