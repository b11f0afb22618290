"""Fencing: a node obeys the leader that it follows, and none whose term is over.

Owns the rules. Doesn't know the orders or the disk: the caller saves the new highest (term,
attempt) before it obeys.

Groups that didn't see each other may have elected leaders of the same term number. A term is
therefore a number and its leader: a node that has obeyed one leader in it refuses the other until
that one takes a higher term.
"""

from dataclasses import dataclass

from jupiterd.cluster.values.bounds import is_count
from jupiterd.errors import RefusedError
from jupiterd.ids import NodeId, short


def is_followed(caller: NodeId, term: int | None, leader: NodeId | None, known_term: int) -> bool:
    """Say whether this node follows a caller that claims to lead in `term`.

    A term above the highest known is one that its leader hasn't announced to us yet.
    """
    return caller == leader and (term is None or term <= known_term)


def check_followed(
    caller: NodeId, term: int | None, leader: NodeId | None, known_term: int
) -> None:
    """Raise RefusedError where this node doesn't follow a caller that gives orders."""
    if is_followed(caller, term, leader, known_term):
        return
    whom = "nobody" if leader is None else short(leader)
    claimed = "" if term is None else f" of term {term}"
    raise RefusedError(
        f"an order{claimed} of {short(caller)}, and this node follows {whom} in term {known_term}",
        "orders come from the leader that a node follows; nothing needs doing",
    )


@dataclass(frozen=True)
class Obeyed:
    """The highest (term, attempt) that a node has obeyed, and the leader of that term."""

    term: int = 0
    attempt: int = 0
    leader: NodeId | None = None
    """None: no order was obeyed yet, or by a version that didn't record the leader."""

    def after(self, leader: NodeId, term: int, attempt: int) -> "Obeyed":
        """Return the highest (term, attempt) after an order; attempt 0 belongs to no gang.

        Raises:
            RefusedError: a higher term or attempt, or another leader in this term, has been obeyed.
        """
        is_outdated = term == self.term and 0 < attempt < self.attempt
        if is_outdated or term < self.least_term(leader):
            of = f"{short(leader)}'s term {term}, attempt {attempt}"
            raise RefusedError(
                f"an order of {of} came after {self.words}",
                "the leader it came from has been replaced; nothing needs doing",
            )
        return Obeyed(term, attempt or self.attempt, leader)

    def least_term(self, leader: NodeId) -> int:
        """Return the lowest term in which orders of this leader are obeyed."""
        return self.term if self.leader in (None, leader) else self.term + 1

    @property
    def words(self) -> str:
        """The text for people."""
        whose = "" if self.leader is None else f" of {short(self.leader)}"
        return f"term {self.term}, attempt {self.attempt}{whose}"

    def __str__(self) -> str:
        return f"{self.term}/{self.attempt}/{self.leader or ''}"

    @classmethod
    def parse(cls, text: str) -> "Obeyed":
        """Read what `str` wrote; nothing has been obeyed where empty, or no leader's term is it."""
        term, attempt, leader = (text or "0/0/").split("/")
        if not (is_count(int(term)) and is_count(int(attempt))):
            return cls()
        return cls(int(term), int(attempt), NodeId(leader) if leader else None)
