"""The check of a cycle before it is requested: surveys its sources and refuses hopeless ones.

Owns combining this survey with the leader's prediction. Doesn't know command-line options.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jupiterd.ctl.preflight.planned_writer import PlannedWriter
from jupiterd.ctl.preflight.source_survey import OnLine, silent, survey_of
from jupiterd.ctl.sources.base_model_source import SCRATCH
from jupiterd.cycle.data.row_advice import field_hint
from jupiterd.cycle.domain.data_sources import DataSource
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.cycle.domain.source_parts import parts_of
from jupiterd.cycle.domain.survey import Survey
from jupiterd.cycle.domain.survey_lines import (
    dropped_line,
    forecast_lines,
    is_hopeless,
    language_help,
    source_line,
)
from jupiterd.cycle.holdout.paired_spread import BROUGHT, FIRST
from jupiterd.cycle.holdout.verdict_forecast import VerdictForecast, verdict_forecast
from jupiterd.cycle.rounds.plan_summary import PlannedCycle, plan_lines
from jupiterd.cycle.rounds.plan_times import Seen, phase_times
from jupiterd.errors import EmptySourceError, TooLittleTextError


@dataclass(frozen=True)
class Preflight:
    """The survey of a domain's sources, and the forecast of its verdict."""

    domain: Domain
    survey: Survey
    forecast: VerdictForecast

    @classmethod
    def of(cls, domain: Domain, on_line: OnLine = silent, begins_with: str = "") -> "Preflight":
        """Survey the sources, usually within ten seconds.

        Args:
            domain: the domain of the file.
            on_line: gets lines about the progress.
            begins_with: the first model that the command names; empty: the domain's.
        """
        survey = survey_of(domain, on_line)
        first = FIRST if (begins_with or domain.init) == SCRATCH else BROUGHT
        return cls(domain, survey, verdict_forecast(survey.counts, domain.holdout_rules(), first))

    @property
    def is_hopeless(self) -> bool:
        """Return whether the survey shows that there can be no verdict."""
        return is_hopeless(self.survey, self.forecast)

    @property
    def _can_be_judged(self) -> bool | None:
        """Return whether there can be a verdict; None: the survey doesn't show it."""
        if not self.survey.counted:
            return None
        is_open = self.forecast.may_be_judged and not self.forecast.can_be_judged
        return None if is_open else self.forecast.can_be_judged

    def check(self, *, needs_verdict: bool = True) -> None:
        """Raise an error if the survey shows that the cycle can't succeed.

        Raises:
            EmptySourceError: no source has any text.
            TooLittleTextError: there is too little text for a verdict.
        """
        if self.survey.sources and all(source.is_empty for source in self.survey.sources):
            why_not = self.survey.sources[0].why_not
            raise EmptySourceError(why_not, field_hint(why_not))
        if needs_verdict and self.is_hopeless:
            lost = dropped_line(self.survey)
            name = self.domain.domain
            why = f"see why with jupiterctl domain lint {name}" if lost else ""
            helps = [language_help(self.survey) or why, self.forecast.help]
            raise TooLittleTextError(
                "; ".join(filter(None, [self.forecast.answer, lost])),
                ", ".join(filter(None, helps)),
            )

    def lines(self) -> list[str]:
        """Return lines about each source, and whether there can be a verdict."""
        lines = [source_line(source) for source in self.survey.sources]
        return [*lines, *forecast_lines(self.survey, self.forecast)]

    def arguments(self) -> dict[str, Any]:
        """Return the command's field from which the leader predicts steps: the number of tokens."""
        counts, share = self.survey.counts, 1 - self.forecast.held_out_share
        return {"tokens": round(counts.tokens * share)} if self.survey.counted else {}

    def to_plain(self) -> dict[str, Any]:
        """Return the fields of the JSON document."""
        forecast = self.forecast
        return {
            "sources": list(self.survey.to_plain()["sources"]),
            "documents": self.survey.documents,
            "bytes": self.survey.bytes,
            "tokens": self.survey.counts.tokens,
            "is_whole": self.survey.is_whole,
            "took_s": self.survey.took_s,
            "can_be_judged": self._can_be_judged,
            "answer": forecast.answer,
            "help": forecast.help,
            "gate_documents": forecast.gate_documents,
            "gate_clusters": forecast.gate_clusters,
            "dev_documents": forecast.dev_documents,
        }

    def plan_lines(
        self,
        predicted: Mapping[str, Any],
        title: str,
        arguments: Mapping[str, Any],
        writer: PlannedWriter,
    ) -> list[str]:
        """Return the plan of the cycle in at most twelve lines.

        Args:
            predicted: the leader's prediction.
            title: the first line.
            arguments: fields of the command.
            writer: the model that writes synthetic text.
        """
        far_s = sum(map(_politeness_s, self.domain.data_sources))
        rounds = int(arguments["rounds"])
        seen = Seen(self.survey, self.forecast, far_s)
        times = phase_times(seen, predicted, rounds, writer.in_round_1)
        planned = PlannedCycle(
            title=title,
            rounds=rounds,
            survey=self.survey,
            forecast=self.forecast,
            times=times,
            predicted=predicted,
            writer=writer.line(),
            without_verdict=bool(arguments.get("without_verdict")),
            max_steps=int(arguments.get("training", {}).get("max_steps", 0)),
            has_fixed_steps=self.domain.training.steps is not None,
            size="" if arguments.get("init") else str(arguments.get("size", "")),
        )
        return plan_lines(planned)


def _politeness_s(source: DataSource) -> float:
    """Return the highest number of seconds that the pauses between a source's pages take."""
    parts = parts_of(source)
    pages = max(getattr(part, "max_pages", 0) or getattr(part, "max_entries", 0) for part in parts)
    return pages * float(getattr(source, "delay_s", 0.0))


def domain_of(arguments: Mapping[str, Any]) -> Domain:
    """Return the domain in a command's fields; raise InvalidDomainError."""
    return parse_domain(str(arguments["domain_yaml"]), f"{arguments['domain_name']}.yaml")
