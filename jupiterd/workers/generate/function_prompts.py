"""The template `complete_function`: the generator goes on with the beginning of a real function.

Owns how that is asked, also of models that are talked to alone, and how a function comes out of it.
Doesn't know how functions are found and cut (`functions`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.mixing import MAX_VARIANTS
from jupiterd.cycle.templates.prompt import Prompt, WrittenAnswer
from jupiterd.cycle.templates.refusal import Refusal, RefusedAnswer
from jupiterd.protocol.frames import Scalar
from jupiterd.workers.generate.functions import FunctionOpening, completed, ends_function, openings
from jupiterd.workers.generate.grounded_prompt import Fits, GroundedPrompt

KIND = "complete_function"

_INSTRUCTION = (
    "Complete this Python function. Answer with the whole function in one code block, its "
    "beginning unchanged, and nothing else."
)
_FENCED = re.compile(r"```[a-z]*\n(.*?)(\n```|\Z)", re.DOTALL)


@dataclass(frozen=True)
class FunctionPrompt:
    """One function to be completed."""

    parent: Sample
    opening: FunctionOpening

    @property
    def prompt(self) -> Prompt:
        """What the generator is given."""
        message = f"{_INSTRUCTION}\n\n```python\n{self.opening.prompt}\n```\n"
        return Prompt(message, self.opening.prompt, goes_on=True)

    @property
    def origin(self) -> Mapping[str, Scalar]:
        """Nothing: the function itself begins as it does in its document."""
        return {}

    def is_done(self, written: str) -> bool:
        """Say whether what was written has left the function."""
        return ends_function(written, self.opening.indent)

    def taken(self, written: WrittenAnswer) -> str | RefusedAnswer:
        """Return the function, or why there is none."""
        text = written.text if written.is_opened else _continuation(self.opening, written.text)
        if not text.strip():
            return RefusedAnswer(Refusal.EMPTY)
        if (function := completed(self.opening, text)) is not None:
            return function
        return RefusedAnswer(Refusal.MALFORMED if written.is_whole else Refusal.TRUNCATED)


class FunctionPromptMaker:
    """Finds the functions of a document."""

    version = f"{KIND}@1"

    def asks(
        self, parent: Sample, fits: Fits, shuffle: Callable[[list[int]], None]
    ) -> Sequence[GroundedPrompt]:
        """Return the functions of a document that the generator can hold."""
        found = openings(parent.text)
        order = [*range(len(found))]
        shuffle(order)
        asks = (FunctionPrompt(parent, found[number]) for number in order)
        return [*islice((ask for ask in asks if fits(ask.prompt)), MAX_VARIANTS)]


def _continuation(opening: FunctionOpening, answer: str) -> str:
    """Return what an answer adds to the opening; it may repeat that, or begin behind it."""
    fenced = _FENCED.search(answer)
    lines = (fenced[1] if fenced is not None else answer).splitlines(keepends=True)
    last = opening.prompt.rstrip().splitlines()[-1].strip()
    behind = next((at for at, line in enumerate(lines, 1) if line.strip() == last), 0)
    body = "".join(lines[behind:])
    margin = opening.prompt.rpartition("\n")[2]
    first = body.split("\n", 1)[0]
    if behind and not first.startswith(margin):  # a method that was shown without its indentation
        body = "".join(" " * opening.indent + line for line in lines[behind:])
    return body.removeprefix(margin) if body.endswith("\n") else body.removeprefix(margin) + "\n"
