"""Settings of a domain that people may change while a cycle goes on.

Owns which, what each decides, and the domain that comes of them. A change counts from a phase that
hasn't begun: what was made stays as it is. Doesn't know who changes them, or who records it.
"""

import json
from collections.abc import Mapping

from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.base.yaml_text import YamlMistakesError, parse_value, parse_yaml
from jupiterd.cycle.domain.domain import Domain
from jupiterd.errors import InvalidDomainError, UsageError

CHANGEABLE: Mapping[str, Phase] = {
    "generation.templates": Phase.GENERATE,
    "generation.max_tokens": Phase.GENERATE,
    "generation.temperature": Phase.GENERATE,
    "generation.top_p": Phase.GENERATE,
    "filters.quality": Phase.FILTER,
    "filters.rules": Phase.COLLECT,
    "mix_ratio.synthetic_share": Phase.PACK,
}
"""Setting -> the phase that goes by it."""

HINT = "jupiterctl cycle resume --set KEY=VALUE, as in the domain file: " + ", ".join(CHANGEABLE)


def phase_of(setting: str) -> Phase:
    """Return the phase that goes by a setting.

    Raises:
        UsageError: it can't be changed while a cycle goes on.
    """
    if setting not in CHANGEABLE:
        raise UsageError(f"{setting or 'nothing'} can't be changed while a cycle goes on", HINT)
    return CHANGEABLE[setting]


def with_changes(domain: Domain, changes: Mapping[str, str]) -> Domain:
    """Return the domain with other values; those that can't be changed are left as they are.

    changes: setting -> its value as it would stand in the file

    Raises:
        InvalidDomainError: a value isn't what the file might say.
    """
    known = {setting: text for setting, text in changes.items() if setting in CHANGEABLE}
    if not known:
        return domain
    # What is left out has a meaning of its own, and stays so.
    plain = domain.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    try:
        for setting, text in known.items():
            part, _, key = setting.partition(".")
            plain[part] = {**plain.get(part, {}), key: parse_value(text, setting)}
        return parse_yaml(json.dumps(plain), "--set", Domain)
    except YamlMistakesError as error:
        raise InvalidDomainError(error.mistakes[0], HINT) from error


def current_values(domain: Domain) -> dict[str, str]:
    """Return what each setting that may be changed is now, as it would be written."""
    plain = domain.model_dump(mode="json", exclude_none=True)
    found = {setting: setting.partition(".") for setting in CHANGEABLE}
    return {
        setting: json.dumps(plain.get(part, {}).get(key))
        for setting, (part, _, key) in found.items()
    }
