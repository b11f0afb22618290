"""Carries out the commands of a conversation.

Owns what each changes in the talk, and what is said of it. Doesn't read lines, or show any.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jupiterd.ctl.chat.answer_lines import model_line, setting_lines
from jupiterd.ctl.chat.endpoint.answer_chunks import ModelFacts
from jupiterd.ctl.chat.model_names import called_beside, model_called
from jupiterd.ctl.chat.partner import Question
from jupiterd.ctl.chat.saved_talk import as_json, as_markdown
from jupiterd.ctl.chat.slash_commands import SlashCommand, help_lines
from jupiterd.ctl.chat.talk import Talk
from jupiterd.ctl.output.atomic_file import whole_file
from jupiterd.errors import ConflictError, UsageError
from jupiterd.formats import counted, plain
from jupiterd.path_text import path_of, path_text

NONE = frozenset({'""', "''", "none", "off", "-"})
"""What is said to take something away."""


@dataclass(frozen=True)
class Outcome:
    """What a command led to."""

    lines: Sequence[str] = ()
    asks: Question | None = None
    leaves: bool = False


class ChatCommands:
    """The commands of one talk."""

    def __init__(
        self, talk: Talk, facts: Callable[[str], ModelFacts], names: Callable[[], Sequence[str]]
    ) -> None:
        """Store the talk; `facts` asks the daemon about a model, `names` which there are."""
        self._talk, self._facts, self._names = talk, facts, names
        self._saved: set[Path] = set()
        self._by_name: dict[str, Callable[[str], Outcome]] = {
            "help": lambda _: Outcome(help_lines()),
            "show": lambda _: Outcome(setting_lines(talk)),
            "quit": lambda _: Outcome(leaves=True),
            "model": self._model,
            "beside": self._beside,
            "system": self._system,
            "temperature": self._temperature,
            "set": self._set,
            "undo": self._undo,
            "again": self._again,
            "more": self._more,
            "clear": self._clear,
            "save": self._save,
        }

    def carry_out(self, command: SlashCommand) -> Outcome:
        """Carry a command out.

        Raises:
            JupiterError: it can't be; nothing has changed.
        """
        return self._by_name[command.name](command.argument)

    def _model(self, name: str) -> Outcome:
        if name:
            self._talk.talk_to(self._facts(model_called(name)))
            return Outcome([model_line(self._talk.first.facts)])
        current = self._talk.first.facts
        others = [each for each in self._names() if each != current.name]
        return Outcome([model_line(current), *([f"others: {', '.join(others)}"] if others else [])])

    def _beside(self, name: str) -> Outcome:
        if not name or name in NONE:
            was_alone = len(self._talk.partners) == 1
            self._talk.put_beside(None)
            first = self._talk.first.facts.title
            hint = "; /beside MODEL lets another one answer beside it" if was_alone else ""
            return Outcome([f"{first} answers alone{hint}"])
        self._talk.put_beside(self._facts(called_beside(name, self._talk.first.facts.name)))
        return Outcome([model_line(partner.facts) for partner in self._talk.partners])

    def _system(self, text: str) -> Outcome:
        if not text:
            told = plain(self._talk.system) if self._talk.system else "the model is told nothing"
            return Outcome([f'{told}; /system TEXT changes it, /system "" takes it away'])
        self._talk.tell("" if text in NONE else text)
        if all(partner.completes for partner in self._talk.partners):
            return Outcome(["kept, and not sent: a model that completes text has no use for it"])
        return Outcome(["the next question is asked with it; /clear forgets what was said before"])

    def _temperature(self, text: str) -> Outcome:
        return self._value("temperature", text)

    def _set(self, text: str) -> Outcome:
        name, _, value = text.removeprefix("parameter ").strip().partition(" ")
        if name in {"verbose", "quiet"}:
            self._talk.is_verbose = name == "verbose"
            return Outcome([f"figures are {'told at length' if name == 'verbose' else 'short'}"])
        if name == "system":
            return self._system(value.strip() or '""')
        return self._value(name, value.strip())

    def _value(self, name: str, text: str) -> Outcome:
        value = "" if text in NONE else text
        self._talk.sampling = self._talk.sampling.with_value(name, value)
        return Outcome([f"{name} {value}" if value else f"{name} as usual"])

    def _undo(self, _: str) -> Outcome:
        asked = self._talk.undo()
        if not asked:
            return Outcome(["nothing was asked yet"])
        left = counted(len(self._talk.first.conversation.turns), "question")
        return Outcome([f"forgotten: {plain(asked)[:60]}; {left} left"])

    def _again(self, _: str) -> Outcome:
        question = self._talk.ask_again()
        return Outcome(["nothing was asked yet"]) if question is None else Outcome(asks=question)

    def _more(self, _: str) -> Outcome:
        if not self._talk.first.completes:
            name = self._talk.first.facts.title
            raise UsageError(f"{name} chats: tell it to go on", "/more is for base models")
        if len(self._talk.partners) > 1:
            raise UsageError("/more goes on with one model alone", "/beside takes the other away")
        question = self._talk.go_on()
        return Outcome(["nothing was written yet"]) if question is None else Outcome(asks=question)

    def _clear(self, _: str) -> Outcome:
        self._talk.clear()
        return Outcome(
            ["all is forgotten but the system's text" if self._talk.system else "all is forgotten"]
        )

    def _save(self, text: str) -> Outcome:
        path = path_of(text).absolute()
        if path not in self._saved and _is_taken(path):
            raise ConflictError(f"{path_text(path)} is there already", "choose another file")
        content = as_json(self._talk) if path.suffix == ".json" else as_markdown(self._talk)
        with whole_file(path) as draft:
            draft.write_text(content, encoding="utf-8", errors="replace")
        self._saved.add(path)
        turns = counted(len(self._talk.first.conversation.turns), "question")
        return Outcome([f"{path_text(path)}: {turns} with answers"])


def _is_taken(path: Path) -> bool:
    """Say whether something is there; where nobody may look, writing says why it can't be done."""
    with suppress(OSError):
        return path.exists()
    return False
