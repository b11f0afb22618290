"""How an answer is drawn: temperature, top_p, how long, and from which seed.

Pure. Owns the values a user may give and their names in a request. What isn't given is the model's
own, or the server's. Doesn't know how a request is sent.
"""

from dataclasses import dataclass, replace

from jupiterd.errors import UsageError

HOTTEST = 2.0
"""OpenAI's bound of the temperature."""

LARGEST_SEED = (1 << 63) - 1
"""The endpoint's own bound, which every engine takes."""

NAMES = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "num_predict": "max_tokens",
    "seed": "seed",
}
"""What people call a value -> its name here; `num_predict` is ollama's."""


@dataclass(frozen=True)
class Sampling:
    """The values that were given."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None

    def fields(self) -> dict[str, float | int]:
        """Return the fields of a request."""
        given = {name: getattr(self, name) for name in dict.fromkeys(NAMES.values())}
        return {name: value for name, value in given.items() if value is not None}

    def with_value(self, called: str, text: str) -> "Sampling":
        """Return it with another value; an empty text takes the value away.

        Raises:
            UsageError: there is no such value, or it can't be that.
        """
        name = NAMES.get(called)
        if name is None:
            raise UsageError(f"there is no {called}", f"known are {', '.join(NAMES)}")
        return replace(self, **{name: _read(name, text) if text else None})

    def again(self) -> "Sampling":
        """Return the values for another answer to the same question: a seed counts on."""
        return self if self.seed is None else replace(self, seed=(self.seed + 1) % LARGEST_SEED)


def _read(name: str, text: str) -> float | int:
    try:
        value = int(text) if name in {"max_tokens", "seed"} else float(text)
    except ValueError:
        raise UsageError(f"{name} is a number, and {text} is none", _BOUNDS[name]) from None
    is_within = {
        "temperature": 0 <= value <= HOTTEST,
        "top_p": 0 < value <= 1,
        "max_tokens": value >= 1,
        "seed": 0 <= value <= LARGEST_SEED,
    }[name]
    if not is_within:
        raise UsageError(f"{name} can't be {text}", _BOUNDS[name])
    return value


_BOUNDS = {
    "temperature": f"it is from 0 to {HOTTEST:g}",
    "top_p": "it is above 0 and at most 1",
    "max_tokens": "it is a whole number from 1 on",
    "seed": f"it is a whole number from 0 to {LARGEST_SEED}",
}
