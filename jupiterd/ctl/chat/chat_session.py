"""A conversation at a terminal: reads what the user types, asks, shows, and carries out commands.

Owns what Ctrl-C and Ctrl-D do. Doesn't know how any of it is done.
"""

from contextlib import suppress
from pathlib import Path

from jupiterd.ctl.chat.answer_display import Answers
from jupiterd.ctl.chat.answer_lines import changed_lines, greeting
from jupiterd.ctl.chat.answer_round import facts_of, names_of
from jupiterd.ctl.chat.chat_commands import ChatCommands
from jupiterd.ctl.chat.partner import Question
from jupiterd.ctl.chat.prompt_input import PromptInput
from jupiterd.ctl.chat.screen.answer_screen import TextOutput
from jupiterd.ctl.chat.screen.text_output import text_output
from jupiterd.ctl.chat.slash_commands import as_text, slash_command
from jupiterd.ctl.chat.talk import Talk
from jupiterd.ctl.output.console import Console
from jupiterd.errors import JupiterError

HOW_TO_LEAVE = "Ctrl-C again, or Ctrl-D, leaves"


class ChatSession:
    """One conversation, until its user leaves."""

    def __init__(self, state_dir: Path, console: Console, talk: Talk) -> None:
        self._console, self._talk = console, talk
        talk.is_conversation = True
        self._answers = Answers(state_dir, console, talk)
        self._commands = ChatCommands(
            talk, lambda name: facts_of(state_dir, [name])[0], lambda: names_of(state_dir)
        )
        self._state_dir = state_dir
        self._is_leaving = False
        """The next Ctrl-C at the prompt leaves."""

    def converse(self) -> None:
        """Go on until the user leaves."""
        self._say(*greeting(self._talk))
        with PromptInput(self._state_dir) as prompt:
            while self._turn(prompt):
                pass

    def _turn(self, prompt: PromptInput) -> bool:
        """Read and carry out one thing; return False if the user leaves."""
        try:
            text = self._typed(prompt)
            self._is_leaving = self._is_leaving and text is None
            return text is None or self._obey(text, is_literal=prompt.is_literal)
        except EOFError:
            return False
        except JupiterError as error:
            self._console.error(error)
        except KeyboardInterrupt:
            self._say(f"stopped; {HOW_TO_LEAVE}")
            self._is_leaving = True
        return True

    def _typed(self, prompt: PromptInput) -> str | None:
        """Return what was typed next; None: Ctrl-C took it back.

        Raises:
            EOFError: the user leaves, by Ctrl-D or by Ctrl-C for the second time.
        """
        try:
            return prompt.ask()
        except EOFError:
            self._console.line("")
            raise
        except KeyboardInterrupt:
            self._console.line("")
            if self._is_leaving:
                raise EOFError from None
            self._say(HOW_TO_LEAVE)
            self._is_leaving = True
            return None

    def _obey(self, text: str, *, is_literal: bool) -> bool:
        command = None if is_literal else slash_command(text)
        if command is None:
            if text.strip():
                self._ask(self._talk.ask(text if is_literal else as_text(text)))
            return True
        outcome = self._commands.carry_out(command)
        self._say(*outcome.lines)
        if outcome.asks is not None:
            self._ask(outcome.asks)
        return not outcome.leaves

    def _ask(self, question: Question) -> None:
        self._look_again()
        for writing in self._answers.shown(question, self._output()):
            if writing.error is not None:
                self._console.error(writing.error)
        self._console.line("")

    def _look_again(self) -> None:
        """See whether a name means another model by now; what asks says why it can't be seen."""
        names = [partner.facts.name for partner in self._talk.partners]
        with suppress(JupiterError):
            found = facts_of(self._state_dir, names)
            for partner, facts in zip(self._talk.partners, found, strict=True):
                self._say(*changed_lines(partner.facts, facts))
                partner.learn(facts)

    def _say(self, *lines: str) -> None:
        output = self._output()
        for line in lines:
            self._console.line(output.dim(line))

    def _output(self) -> TextOutput:
        """Return the terminal as large as it is now."""
        return text_output(self._console)
