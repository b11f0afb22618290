"""How a change is carried out: by jupiterctl, in a process of its own.

Owns the process and the message about its end. Doesn't know what is changed, or how it was
confirmed.
"""

import asyncio
import os
import sys
from pathlib import Path

from jupiter_tui.actions.action import Action
from jupiterd.errors import ExitCode
from jupiterd.formats import duration
from jupiterd.locations import STATE_DIR_VARIABLE

TIMEOUT_S = 900.0
"""A model's weights may have to be copied before a cycle begins."""


async def carried_out(state_dir: Path, action: Action) -> tuple[str, bool]:
    """Run the command; return its message, and whether it ended with exit status 0."""
    try:
        return await _carried_out(state_dir, action)
    except TimeoutError:
        return f"it didn't end within {duration(TIMEOUT_S)}: {action.typed}", False
    except OSError as error:
        return f"{action.typed} couldn't be run: {error.strerror}", False


async def _carried_out(state_dir: Path, action: Action) -> tuple[str, bool]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jupiterd.ctl.main", *action.command, "--yes"),
        # A variable and no flag: hints show the flag, and people may not have given one.
        env={**os.environ, STATE_DIR_VARIABLE: str(state_dir)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            output, wrong = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    is_done = process.returncode == ExitCode.OK
    words = (output if is_done else wrong).decode("utf-8", "replace").strip()
    return _without_program(words) or action.typed, is_done


def _without_program(words: str) -> str:
    """Return an error without the program's name, and without the empty line before its hint."""
    return words.removeprefix("jupiterctl: error: ").replace("\n\n", "\n")
