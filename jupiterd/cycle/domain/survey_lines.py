"""A look at a domain's sources as people read it.

Pure. Owns the words; doesn't know how anything was counted.
"""

from collections.abc import Iterator, Mapping, Sequence

from jupiterd.cycle.data.reason_words import reason_words
from jupiterd.cycle.domain.survey import SourceSurvey, Survey
from jupiterd.cycle.holdout.verdict_forecast import VerdictForecast
from jupiterd.formats import counted, plain, size

ENOUGH_READ = 30
"""Of a source that wasn't read whole: from fewer nothing is concluded."""

NAMED = 3
"""So many reasons, kinds or sources are named; -o json has them all."""


def source_line(source: SourceSurvey) -> str:
    """Return what one source seems to hold."""
    if source.why_not:
        return f"source {plain(source.name)}: {plain(source.why_not)}"
    about = _about(is_scaled=source.is_scaled)
    parts = [
        _read_of([source]),
        f"{about}{source.documents:,} would be kept, {about}{size(source.bytes)}",
    ]
    of_them = "of those read: " if source.is_scaled else ""
    seen = [_largest(source.kinds)] if source.kinds else []
    seen += [f"dropped {_largest(source.dropped)}"] if source.dropped else []
    parts += [of_them + "; ".join(seen)] if seen else []
    parts += _slow_words(source.slow)
    return f"source {plain(source.name)}: {'; '.join(parts)}"


def text_line(survey: Survey) -> str:
    """Return what all of it comes to."""
    about = _about(is_scaled=survey.is_scaled)
    return (
        f"{about}{counted(survey.documents, 'document')}, {about}{size(survey.bytes)}, "
        f"about {survey.counts.tokens:,} tokens"
    )


def reading_line(survey: Survey) -> str:
    """Return what was read, and what of it would be left out, first reasons first."""
    parts = list(_reading(survey))
    far = [source for source in survey.sources if source.why_not]
    if far:
        names = ", ".join(plain(source.name) for source in far[:NAMED])
        more = f" and {len(far) - NAMED} more" if len(far) > NAMED else ""
        parts.append(f"{names}{more}: {plain(far[0].why_not)}")
    return "; ".join(parts)


def forecast_lines(survey: Survey, forecast: VerdictForecast) -> list[str]:
    """Return whether it can be judged, how well, and what would help."""
    if not survey.counted:
        return ["can this be judged? that is known once the sources have been collected"]
    if not forecast.can_be_judged and not is_hopeless(survey, forecast):
        return [
            f"can this be judged? not with what was counted: {forecast.answer}",
            "more is known once all sources have been collected",
        ]
    answer = forecast.answer if forecast.can_be_judged else f"no: {forecast.answer}"
    help_words = ", ".join(filter(None, [language_help(survey), forecast.help]))
    helps = [f"what would help: {help_words}"] if help_words else []
    return [f"can this be judged? {answer}", *helps]


def language_help(survey: Survey) -> str:
    """Return what to write where the text is in another language than was said; or nothing."""
    if not survey.other_language:
        return ""
    return f"say language: {survey.other_language}, for most of it isn't in {survey.language}"


def dropped_line(survey: Survey) -> str:
    """Return how much of what was read is dropped, and why; empty: nothing is."""
    dropped = survey.dropped
    read = sum(source.read for source in survey.counted)
    if not dropped:
        return ""
    share = dropped.total() / max(read, 1)
    of_them = " of those read" if survey.is_scaled else ""
    return f"{share:.0%}{of_them} are dropped: {_largest(dropped)}"


def is_hopeless(survey: Survey, forecast: VerdictForecast) -> bool:
    """Say whether it is known already that there can be no verdict.

    Sources that weren't counted, or not to their end, may have what lacks.
    """
    is_known = all(map(_is_known, survey.sources))
    return is_known and bool(survey.sources) and not forecast.may_be_judged


def _is_known(source: SourceSurvey) -> bool:
    """Say whether what is told of a source can be relied on to refuse something."""
    if source.is_empty or source.is_whole:
        return True
    return not (source.why_not or source.is_at_least) and source.read >= ENOUGH_READ


def _reading(survey: Survey) -> Iterator[str]:
    known = survey.counted
    if not known:
        return
    sources = counted(len(known), "source")
    yield f"{_read_of(known)} of {sources} in {survey.took_s:.0f} s"
    if lost := dropped_line(survey):
        yield lost
    yield from _slow_words([name for source in known for name in source.slow])


def _slow_words(names: Sequence[str]) -> list[str]:
    """Return what names those that were set aside because they took too long."""
    named = ", ".join(map(plain, names[:NAMED]))
    return [f"set aside, for they took too long to look at: {named}"] if names else []


def _largest(counts: Mapping[str, int]) -> str:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    listed = ", ".join(f"{plain(reason_words(name))} {count:,}" for name, count in ranked[:NAMED])
    return listed + (f" and {len(ranked) - NAMED} more" if len(ranked) > NAMED else "")


def _read_of(sources: Sequence[SourceSurvey]) -> str:
    """Return how many were read of how many there are."""
    read, found = (sum(getattr(each, name) for each in sources) for name in ("read", "found"))
    least = "at least " if any(source.is_at_least for source in sources) else ""
    nouns = {_NOUNS.get(source.kind, "row") for source in sources}
    noun = nouns.pop() if len(nouns) == 1 else "document"
    if read >= found:
        return f"read {counted(read, noun)}{', and there may be more' if least else ''}"
    return f"read {read:,} of {least}{counted(found, noun)}"


def _about(*, is_scaled: bool) -> str:
    """Return what is said before every figure that is scaled."""
    return "about " if is_scaled else ""


_NOUNS = {
    "folder": "file",
    "git": "file",
    "python_stdlib": "file",
    "web": "page",
    "feed": "page",
}
"""Kind of a source -> what is read of it; of all others it is rows."""
