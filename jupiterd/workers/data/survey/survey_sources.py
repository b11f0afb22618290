"""A look at a domain's sources before anything is spent: counted, a part of them read and judged.

    python -m jupiterd.workers.data.survey.survey_sources < request.json > survey.json

Owns the request and the time that it may take. jupiterctl starts it as a process of its own, for
the same readers and rules that a cycle uses are loaded here. Doesn't know what is done with it.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
from pydantic import TypeAdapter

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.domain.data_sources import DataSource
from jupiterd.cycle.domain.survey import Survey
from jupiterd.errors import JupiterError
from jupiterd.workers.data.collect.cleaned_document import Cleaning, once, within_limits
from jupiterd.workers.data.collectors.kinds import open_collector
from jupiterd.workers.data.extract.extraction import ExtractionLimits, Extractor
from jupiterd.workers.data.survey.survey_sample import Looked, SourceSample
from jupiterd.workers.data.survey.survey_verdicts import (
    JudgedSource,
    SurveyRules,
    judged_in_time,
    main_language,
    surveyed,
)
from jupiterd.workers.progress import Progress, silent

LEAST_S = 3.0
"""For reading and judging, however long this process took to begin on a busy machine."""

ONE_DOCUMENT_S = 3.0
"""What one document may take: a file that takes longer is no reason to wait."""

FEW_PAGES = 4
"""Of a site, a second apart: enough to tell its language, and that it answers."""

_LIMITS = ExtractionLimits(cpu_s=ONE_DOCUMENT_S, wall_s=2 * ONE_DOCUMENT_S, tries=1)

READING_SHARE = 0.6
"""Of the time; the rest is for judging what was read."""

BEFORE_COLLECTION = frozenset({"web", "feed", "hugging_face"})
"""Kinds of source that are far away: whoever only looks doesn't fetch them."""


def main() -> int:
    """Answer one request."""
    request: dict[str, Any] = json.load(sys.stdin)
    request["within_s"] = max(LEAST_S, request["within_s"] - _since_the_start_s())
    json.dump(survey(request, report_progress).to_plain(), sys.stdout)
    return 0


def report_progress(done: int, total: int, unit: str) -> None:
    """Say on standard error what is being done: a number, of how many (0: not known), and what."""
    sys.stderr.write(f"{done} {total} {unit}\n")
    sys.stderr.flush()


def survey(request: Mapping[str, Any], on_progress: Progress = silent) -> Survey:
    """Return what the sources seem to hold.

    Args:
        request: sources (as in a domain file), rules (see `SurveyRules`), within_s; and `goes_far`:
            sources that are far away are asked, too.
        on_progress: hears what is being done.
    """
    began_s = time.monotonic()
    whole_s, goes_far = float(request["within_s"]), bool(request.get("goes_far"))
    until_s = began_s + READING_SHARE * whole_s
    adapter: TypeAdapter[DataSource] = TypeAdapter(DataSource)
    sources = [adapter.validate_python(each) for each in request["sources"]]
    rules = SurveyRules.from_plain(request["rules"])
    scratch = Path(tempfile.mkdtemp(prefix="jupiter-survey-"))
    try:
        with Extractor(_LIMITS) as extractor:
            looked: list[Looked] = []
            for number, source in enumerate(sources):
                now_s = time.monotonic()
                share_s = max(0.0, until_s - now_s) / (len(sources) - number)
                if why_not := _left_out(source, share_s, goes_far=goes_far):
                    looked.append(Looked(source, why_not=why_not))
                    continue
                short = _cut_short(source, share_s)
                own, end_s = scratch / str(number), now_s + share_s
                sample = SourceSample(short, extractor, own, end_s, rules.language, on_progress)
                looked.append(_look(sample))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    with Extractor(_LIMITS) as extractor:  # begun where markup may take long
        clean = once(within_limits(extractor))
        if not rules.language:
            rules = rules.of_language(main_language(looked, clean, until_s))
        summed = _summed(looked, rules, (began_s, whole_s), on_progress, clean)
        end_s = began_s + whole_s
        return replace(summed, other_language=_other_language(summed, looked, clean, end_s))


def _other_language(survey: Survey, looked: list[Looked], clean: Cleaning, until_s: float) -> str:
    """Return what most of the text is in, where its language is why most of it is dropped."""
    dropped = survey.dropped
    foreign = sum(dropped[reason] for reason in _OF_OTHER_LANGUAGES)
    if 2 * foreign <= sum(source.read for source in survey.counted):
        return ""
    found = main_language(looked, clean, until_s)
    return "" if found.startswith("code:") or found == survey.language else found


_OF_OTHER_LANGUAGES = (DropReason.OTHER_LANGUAGE, DropReason.NO_STOP_WORDS)

FAR = "not counted before collection"
NO_TIME_LEFT = "not counted: looking at the others took all the time"


def _left_out(source: DataSource, within_s: float, *, goes_far: bool) -> str:
    """Return why a source isn't looked at; empty: it is."""
    if not goes_far and _is_far(source):
        return FAR
    # A repository is cloned whole or not at all; of a folder some files can always be read.
    return NO_TIME_LEFT if source.kind == "git" and not within_s else ""


def _is_far(source: DataSource) -> bool:
    is_remote = source.kind == "git" and not str(getattr(source, "url", "")).startswith("file:")
    return source.kind in BEFORE_COLLECTION or is_remote


_CUT_SHORT = frozenset({"web", "feed"})


def _cut_short(source: DataSource, within_s: float) -> DataSource:
    """Return a source that is far away with bounds that let it be looked at in the time."""
    timeout_s = max(1.0, within_s)
    if source.kind == "git":
        return source.model_copy(update={"timeout_s": timeout_s})
    if source.kind not in _CUT_SHORT:
        return source
    few = {"max_pages": FEW_PAGES, "max_entries": FEW_PAGES, "sitemaps": ()}
    known = {name: value for name, value in few.items() if hasattr(source, name)}
    return source.model_copy(update={**known, "timeout_s": timeout_s / FEW_PAGES})


def _look(sample: SourceSample) -> Looked:
    try:
        with closing(sample):
            looked = sample.look(open_collector(sample.source))
    except JupiterError as error:
        return Looked(sample.source, why_not=error.message)
    # Of a site only its first pages were asked for.
    return replace(looked, is_at_least=looked.is_at_least or sample.source.kind in _CUT_SHORT)


def _since_the_start_s() -> float:
    """Return how long this process has taken so far: loading libraries counts, too."""
    now_s = time.time()  # noqa: TID251 - as the system tells when a process began
    return max(0.0, now_s - psutil.Process().create_time())


def _summed(
    looked: list[Looked],
    rules: SurveyRules,
    time_s: tuple[float, float],
    on_progress: Progress,
    clean: Cleaning,
) -> Survey:
    """Return what comes of it; time_s: when the look began, and how long it may take."""
    began_s, whole_s = time_s
    judging_from_s = time.monotonic()
    sources: list[JudgedSource] = []
    for number, one in enumerate(looked):
        now_s = time.monotonic()
        left_s = max(0.0, began_s + whole_s - now_s)
        until_s = now_s + left_s / (len(looked) - number)
        sources.append(judged_in_time(one, rules, until_s, on_progress, clean))
    surveys, (likely, *others) = surveyed(sources, rules)
    judging_s = round(time.monotonic() - judging_from_s, 2)
    reading_s = round(judging_from_s - began_s, 2)
    return Survey(surveys, likely, tuple(others), rules.language, reading_s, judging_s)


if __name__ == "__main__":
    sys.exit(main())
