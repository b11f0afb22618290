"""Asks a question of a talk, and shows the answers with their figures.

Owns the order: answers, figures, errors. Doesn't know where the question comes from.
"""

from pathlib import Path

from jupiterd.ctl.chat.answer_lines import figures_line
from jupiterd.ctl.chat.answer_progress import AnswerProgress
from jupiterd.ctl.chat.answer_round import AnswerRound
from jupiterd.ctl.chat.partner import Question
from jupiterd.ctl.chat.screen.answer_screen import AnswerScreen, TextOutput, answer_screen
from jupiterd.ctl.chat.talk import Talk
from jupiterd.ctl.output.console import Console


class Answers:
    """Whoever asks the partners of a talk."""

    def __init__(self, state_dir: Path, console: Console, talk: Talk) -> None:
        self._state_dir, self._console, self._talk = state_dir, console, talk

    def shown(self, question: Question, output: TextOutput) -> list[AnswerProgress]:
        """Ask, and show what comes while it comes; return the answers.

        Raises:
            KeyboardInterrupt: Ctrl-C has stopped it; what came is shown, with its figures.
        """
        titles = [partner.facts.title for partner in self._talk.partners]
        return self._asked(question, answer_screen(output, titles), output)

    def silent(self, question: Question, screen: AnswerScreen) -> list[AnswerProgress]:
        """Ask, and return the answers."""
        return self._asked(question, screen, None)

    def _asked(
        self, question: Question, screen: AnswerScreen, output: TextOutput | None
    ) -> list[AnswerProgress]:
        asking = AnswerRound(self._console, self._talk.partners, question, screen)
        try:
            asking.run(self._state_dir)
        finally:
            if output is not None:
                self._show_figures(asking.writings, output)
        return asking.writings

    def _show_figures(self, writings: list[AnswerProgress], output: TextOutput) -> None:
        """Show them at a terminal; elsewhere, only if somebody wants all of them."""
        for writing in writings:
            if not (writing.text or writing.thoughts) or writing.error is not None:
                continue
            line = figures_line(writing, self._talk)
            if output.is_terminal:
                output.write(f"{output.dim(line)}\n")
            elif self._talk.is_verbose:
                self._console.notice(line)
