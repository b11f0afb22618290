"""Which orders a node still obeys: none of a leader, or of a gang, that it knows to be over.

Owns the rule. Doesn't know orders, or what is on disk: whoever obeys saves the new highest first.
"""

from dataclasses import dataclass

from jupiterd.errors import RefusedError


@dataclass(frozen=True, order=True)
class Obeyed:
    """The highest (term, epoch) that a node has obeyed."""

    term: int = 0
    epoch: int = 0

    def after(self, term: int, epoch: int) -> "Obeyed":
        """Return the highest once an order is obeyed; epoch 0 is of no gang.

        Raises:
            RefusedError: a higher term or epoch has been obeyed before.
        """
        wanted = Obeyed(term, epoch or self.epoch)
        if wanted < self:
            raise RefusedError(
                f"an order of term {term}, epoch {epoch} came after term {self.term}, "
                f"epoch {self.epoch}",
                "the leader it came from has been replaced; nothing needs doing",
            )
        return wanted

    def __str__(self) -> str:
        return f"{self.term}/{self.epoch}"

    @classmethod
    def parse(cls, text: str) -> "Obeyed":
        """Read what `str` wrote; nothing has been obeyed where it is empty."""
        term, _, epoch = (text or "0/0").partition("/")
        return cls(int(term), int(epoch))
