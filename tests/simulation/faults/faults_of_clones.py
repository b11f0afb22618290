"""Faults of two machines with one key, as they are planted by `mutants`.

Owns the bad versions of methods of `clones`, `election` and the simulated process: each takes the
place of one, or wraps it.
"""

from typing import Any


def notice_as_caller_alone(watch: Any, number: str, _where: str) -> bool:
    return number in watch._greetings


def stand_again(election: Any) -> bool:
    return election._can_persist and election.leader != election._self_id


def answer_members_alone(process: Any, node: Any) -> bool:
    return process.knows(node)
