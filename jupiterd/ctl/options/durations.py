"""Lengths of time on the command line.

Owns the formats `90`, `90s`, `30m` and `2h`. Doesn't know which options use them.
"""

import re

import click

_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class Duration(click.ParamType[float]):
    """A click parameter type: a length of time, converted to seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the length of time in seconds."""
        match = _FORM.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is no length of time such as 90, 30s, 5m or 2h", param, ctx)
        return float(match[1]) * _SECONDS[match[2]]


DURATION = Duration()
