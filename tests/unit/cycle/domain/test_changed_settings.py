"""Settings of a domain that people change while a cycle goes on."""

import json

import pytest

from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.domain.changed_settings import (
    CHANGEABLE,
    current_values,
    phase_of,
    with_changes,
)
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.errors import InvalidDomainError, UsageError
from jupiterd.locations import config_folder

DOMAINS = sorted(path for path in (config_folder() / "domains").glob("*.yaml"))


def domain(name: str = "python") -> Domain:
    path = config_folder() / "domains" / f"{name}.yaml"
    return parse_domain(path.read_text(), path.name)


@pytest.mark.parametrize("path", DOMAINS, ids=lambda path: path.stem)
def test_every_shipped_domain_takes_a_change_and_is_else_the_same(path) -> None:
    before = parse_domain(path.read_text(), path.name)
    after = with_changes(before, {"generation.temperature": "0.5"})
    assert after.generation.temperature == 0.5
    as_it_was = {"temperature": before.generation.temperature}
    assert (
        after.model_copy(update={"generation": after.generation.model_copy(update=as_it_was)})
        == before
    )


def test_values_are_written_as_in_the_file() -> None:
    templates = "[{kind: complete_function, samples: 7}]"
    changes = {"generation.templates": templates, "mix_ratio.synthetic_share": "0.2"}
    after = with_changes(domain(), changes)
    assert [each.samples for each in after.generation.templates] == [7]
    assert after.mix_ratio.synthetic_share == 0.2
    assert json.loads(current_values(after)["mix_ratio.synthetic_share"]) == 0.2
    assert set(current_values(after)) == set(CHANGEABLE)


def test_what_is_not_the_domain_s_is_left_alone() -> None:
    assert with_changes(domain(), {"interactive": "false"}) == domain()


@pytest.mark.parametrize(
    ("setting", "text", "why"),
    [
        ("generation.temperature", "hot", "generation.temperature: expected"),
        ("generation.temperature", "1, other: 2", "expected one value"),
        ("generation.temperature", "1}", "generation.temperature"),
        ("generation.temperature", "1\n2", "on one line"),
        ("mix_ratio.synthetic_share", "0.99", "mix_ratio.synthetic_share: expected"),
        ("generation.templates", "&a [*a]", "expected plain values"),
    ],
)
def test_a_value_that_the_file_may_not_say_is_refused(setting: str, text: str, why: str) -> None:
    with pytest.raises(InvalidDomainError) as refused:
        with_changes(domain(), {setting: text})
    assert why in refused.value.message
    assert "--set KEY=VALUE" in refused.value.hint


def test_only_what_decides_what_is_still_to_come_can_be_changed() -> None:
    assert phase_of("mix_ratio.synthetic_share") is Phase.PACK
    for setting in ("holdout.salt", "gate.alpha", "training.steps", "data_sources", ""):
        with pytest.raises(UsageError, match="can't be changed"):
            phase_of(setting)
