"""The list that comparison words are taken from: the 2,048 English ones of BIP-39.

Owns where the list comes from. They have three to eight letters and differ in the first four.
"""

from collections.abc import Sequence
from functools import cache

from mnemonic import Mnemonic

from jupiterd.cluster.membership.approval import Numbers, read_words, spell


@cache
def word_list() -> Sequence[str]:
    """Return the words; read from disk once."""
    return tuple(Mnemonic("english").wordlist)


def spelled(numbers: Numbers) -> str:
    """Return comparison words as people read them."""
    return spell(numbers, word_list())


def typed(text: str) -> Numbers:
    """Read comparison words that somebody has typed; raises UsageError where they are none."""
    return read_words(text, word_list())
