"""Has one question answered by everybody who was asked, all at the same time.

Owns the event loop of a question, and what is said while nothing comes. Doesn't know the prompt, or
what follows an answer.
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from jupiterd.ctl.chat.answer_lines import forgotten_line, waiting_line
from jupiterd.ctl.chat.answer_progress import AnswerProgress
from jupiterd.ctl.chat.busy_retry import Patience
from jupiterd.ctl.chat.endpoint.answer_chunks import ModelFacts
from jupiterd.ctl.chat.endpoint.served_api import ServedApi
from jupiterd.ctl.chat.partner import Partner, Question, Reader, ask
from jupiterd.ctl.chat.screen.answer_screen import AnswerScreen
from jupiterd.ctl.output.console import Console
from jupiterd.errors import BusyError, JupiterError

QUIET_S = 0.4
"""Seconds without a token after which it is said what is waited for."""

SAID_AGAIN_S = 1.0


def facts_of(state_dir: Path, models: Sequence[str]) -> list[ModelFacts]:
    """Return what the daemon knows of models.

    Raises:
        JupiterError: there is none of that name, or no daemon answers.
    """

    async def ask_all() -> list[ModelFacts]:
        async with ServedApi(state_dir) as api:
            return [await api.facts(model) for model in models]

    return asyncio.run(ask_all())


def names_of(state_dir: Path) -> list[str]:
    """Return the names of the models that there are; raises JupiterError as `facts_of` does."""

    async def ask_all() -> list[str]:
        async with ServedApi(state_dir) as api:
            return await api.names()

    return asyncio.run(ask_all())


class AnswerRound:
    """One question, and the answers of all partners as far as they have come."""

    def __init__(
        self,
        console: Console,
        partners: Sequence[Partner],
        question: Question,
        screen: AnswerScreen,
    ) -> None:
        self._console, self._partners, self._question = console, partners, question
        self._screen = screen
        self._said = ""
        self._later: list[str] = []
        now_s = time.monotonic()
        self.writings = [AnswerProgress(partner.facts, now_s) for partner in partners]

    def run(self, state_dir: Path) -> None:
        """Have it answered; errors are kept with the answers.

        Raises:
            KeyboardInterrupt: Ctrl-C has stopped it; what was written is there.
        """
        try:
            asyncio.run(self._run(state_dir))
        finally:
            self._console.settle()
            self._screen.close()
            for line in self._later:
                self._console.notice(line)

    async def _run(self, state_dir: Path) -> None:
        self._has_begun = asyncio.Event()
        async with ServedApi(state_dir) as api:
            await asyncio.gather(self._ask_all(api), self._say_what_is_waited_for())

    async def _ask_all(self, api: ServedApi) -> None:
        try:
            await asyncio.gather(*(self._ask(api, side) for side in range(len(self._partners))))
        finally:
            self._has_begun.set()

    async def _ask(self, api: ServedApi, side: int) -> None:
        partner, writing = self._partners[side], self.writings[side]
        reader = Reader(
            text=lambda piece: self._show(side, piece),
            waits=self._take_words,
            forgets=lambda turns: self._tell(forgotten_line(partner.facts, turns)),
            now_s=time.monotonic,
        )
        patience = Patience(partner.facts, time.monotonic())
        try:
            while not await self._is_asked(api, side, reader, patience):
                pass
        except JupiterError as error:
            writing.error = error
        self._console.settle()
        self._screen.end(side)

    async def _is_asked(
        self, api: ServedApi, side: int, reader: Reader, patience: Patience
    ) -> bool:
        """Ask; where it is to be asked again, wait until then and return False."""
        writing = self.writings[side]
        try:
            await ask(api, self._partners[side], self._question, reader, writing)
        except BusyError as error:
            wait_s = None if writing.text else patience.wait_s(error, time.monotonic())
            if wait_s is None:
                raise
            for line in patience.lines(error):
                self._tell(line)
            await asyncio.sleep(wait_s)
            return False
        return True

    def _show(self, side: int, piece: str) -> None:
        self._has_begun.set()
        self._console.settle()
        self._screen.text(side, piece)

    def _tell(self, line: str) -> None:
        """Tell it at once, or below the answers where one is being drawn."""
        if self._has_begun.is_set():
            self._later.append(line)
        else:
            self._console.notice(line)

    def _take_words(self, said: str) -> None:
        self._said = said

    async def _say_what_is_waited_for(self) -> None:
        """Say it until the first token comes, on a terminal."""
        quiet_s = QUIET_S
        while not await _is_set(self._has_begun, quiet_s):
            waiting = next((each for each in self.writings if each.error is None), None)
            if waiting is not None:
                line = waiting_line(waiting, time.monotonic(), self._said)
                self._console.passing_notice(line)
            quiet_s = SAID_AGAIN_S


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), within_s)
    except TimeoutError:
        return False
    return True
