"""A domain's own questions on their way into a cycle: stored where it is asked for, then recorded.

Owns that. Every node can fetch them from the store. Doesn't know the form of a question, or who is
asked.
"""

import asyncio
import secrets
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.facts import CycleStarted
from jupiterd.cycle.questions.question_file import (
    MAX_DOMAIN_BYTES,
    QUESTIONS,
    QUESTIONS_FILE,
    read_questions,
)
from jupiterd.cycle.runs.recorded_settings import questions_of
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId, short
from jupiterd.protocol.commands.cycle_commands import DescribedCycle, StartCycle
from jupiterd.protocol.frames import Scalar
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.disk import written

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain


async def bring_questions(store: ArtifactStore, spool: Path, command: StartCycle) -> StartCycle:
    """Replace the text of a cycle's questions by the artifact that holds it.

    spool: where a copy is laid out before the store takes it

    Raises:
        UsageError: a line is no question, or there are too many.
        DiskFullError: there is no room for them.
    """
    if command.questions_text is None:
        return command
    draft = spool / secrets.token_hex(8)
    try:
        taken = await asyncio.to_thread(_taken_in, store, draft, command.questions_text)
    finally:
        await asyncio.to_thread(shutil.rmtree, draft, ignore_errors=True)
    return replace(command, questions_text=None, questions=taken)


def _taken_in(store: ArtifactStore, draft: Path, text: str) -> ArtifactId:
    if len(text.encode()) > MAX_DOMAIN_BYTES:
        raise UsageError(f"the domain's questions have more than {MAX_DOMAIN_BYTES:,} bytes")
    read_questions(text, "the domain's questions")
    with written():
        draft.mkdir(mode=0o700)
        (draft / QUESTIONS_FILE).write_text(text, encoding="utf-8", newline="")
    return store.ingest(draft)


def recorded_questions(domain: "Domain", command: DescribedCycle) -> dict[str, Scalar]:
    """Return what a cycle's settings say of its questions; nothing before they are stored.

    Raises:
        UsageError: the domain has questions, and whoever asks hasn't read them.
    """
    if domain.evaluation.questions and not (command.questions or command.questions_text):
        raise UsageError(
            f"the questions of {domain.domain} weren't read",
            "start the cycle with jupiterctl of this version",
        )
    return {QUESTIONS: command.questions} if command.questions else {}


async def check_questions(reach: ArtifactReach, started: CycleStarted) -> None:
    """Raise NotFoundError where nobody in reach has the questions that a cycle is to ask."""
    asked = questions_of(started.settings)
    if asked and not await reach.is_in_reach(asked):
        raise NotFoundError(
            f"no node in reach holds the questions {short(asked)}",
            "start the cycle again: its domain's file is read again",
        )
