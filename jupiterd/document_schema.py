"""The form of every JSON document that leaves Jupiter, by its name.

Owns the name alone. Under one name keys may be added and none changes its meaning, so whoever reads
a document skips what it doesn't know. Doesn't know any document.
"""

from typing import Final

SCHEMA: Final = "jupiter/v1"
