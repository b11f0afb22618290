"""How much text is held out for the gate, for development and for the vault.

Owns these amounts, for any number of documents. Doesn't know which documents that are
(`holdout_plan`), or what they can show (`verdict_forecast`).

| documents | for the gate | for development | for the vault |
|---|---|---|---|
| 60 | 15 | 5 | - |
| 120 | 30 | 7 | - |
| 400 | 80 | 20 | - |
| 4,000 | 252 | 63 | 126 |
| 100,000 | 1,264 | 316 | 632 |

The gate has a quarter of a small collection, for with fewer documents it sees nothing, and four
times the root of a large one: twice as many documents see an effect that is smaller by a third, but
cost twice as much text that can't be learned from.
"""

import math
from dataclasses import dataclass
from typing import Final

GATE_SHARE: Final = 0.25
"""Of all documents, the gate has no more than this."""

MOST_GATE_SHARE: Final = 0.3
"""Unless that is fewer than the least for a verdict: then it may have so much."""

GATE_ROOTS: Final = 4
"""And no more than so many times the root of their number."""

DEV_SHARE: Final = 0.25
"""Documents for development, for each of the gate's."""

LEAST_DEV_DOCUMENTS: Final = 5
"""Fewer tell nothing about when to stop training."""

VAULT_SHARE: Final = 0.5
"""Documents for the vault, for each of the gate's, where there are VAULT_FROM or more."""

VAULT_FROM: Final = 2000
"""A smaller collection has no text to spare for what is looked at once in five promotions."""

LEAST_GATE_DOCUMENTS: Final = 12
"""With fewer the verdict is ABSTAIN, unless the domain says otherwise."""

LEAST_GATE_CLUSTERS: Final = 6
"""With fewer clusters the verdict is ABSTAIN, unless the domain says otherwise: the test of
`gate.paired` was tried with so many, and not with fewer."""

ENOUGH_GATE_CLUSTERS: Final = 12
"""Whole clusters are held out where the gate has so many of them; else they are cut."""

MOST_HELD_OUT: Final = 0.5
"""Of all documents, no more are ever held out."""

_MANY: Final = 1_000_000


@dataclass(frozen=True)
class HoldoutRules:
    """What a domain file says of its holdout; None: it is worked out from the text."""

    salt: str
    fraction: float | None = None
    """Share of the clusters that is held out."""
    dev: float | None = None
    """Share of the holdout for development."""
    vault: float | None = None
    """Share of the holdout for the vault."""
    min_documents: int | None = None
    min_clusters: int | None = None
    min_document_bytes: int = 256
    """Shorter documents aren't scored."""
    max_cluster_documents: int = 20
    """No more documents of one cluster are scored."""
    margin_bpb: float = 0.005
    alpha: float = 0.05

    @property
    def least_documents(self) -> int:
        """Return how many documents the gate needs for a verdict."""
        return LEAST_GATE_DOCUMENTS if self.min_documents is None else self.min_documents

    @property
    def least_clusters(self) -> int:
        """Return of how many clusters they must be."""
        return LEAST_GATE_CLUSTERS if self.min_clusters is None else self.min_clusters


@dataclass(frozen=True)
class HoldoutParts:
    """Documents of each part of the holdout."""

    gate: int
    dev: int
    vault: int

    @property
    def total(self) -> int:
        """Return how many are held out together."""
        return self.gate + self.dev + self.vault


def wanted_parts(documents: int, rules: HoldoutRules) -> HoldoutParts:
    """Return how many documents of so many are held out, and for what."""
    if rules.fraction is not None or rules.dev is not None or rules.vault is not None:
        return _of_stated_fraction(documents, rules)
    gate = min(math.floor(documents * GATE_SHARE), math.floor(GATE_ROOTS * math.sqrt(documents)))
    gate = max(gate, min(rules.least_documents, math.floor(documents * MOST_GATE_SHARE)))
    dev = min(max(LEAST_DEV_DOCUMENTS, math.floor(gate * DEV_SHARE)), documents // 6)
    vault = math.floor(gate * VAULT_SHARE) if documents >= VAULT_FROM else 0
    return HoldoutParts(gate, dev, vault)


def least_documents(rules: HoldoutRules) -> int:
    """Return about how many documents there must be for a verdict."""
    share = MOST_GATE_SHARE
    if rules.fraction is not None:
        share = max(wanted_parts(_MANY, rules).gate / _MANY, 1 / _MANY)
    return math.ceil(max(rules.least_documents, rules.least_clusters) / share)


def named_shares(documents: int, rules: HoldoutRules) -> tuple[float, float, float]:
    """Return the fraction held out and its shares for development and vault, as far as told."""
    usual = wanted_parts(documents, HoldoutRules(rules.salt, min_documents=rules.min_documents))
    fraction = usual.total / documents if documents else 0.0
    held = max(1, usual.total)
    return (
        fraction if rules.fraction is None else rules.fraction,
        usual.dev / held if rules.dev is None else rules.dev,
        usual.vault / held if rules.vault is None else rules.vault,
    )


def _of_stated_fraction(documents: int, rules: HoldoutRules) -> HoldoutParts:
    fraction, dev, vault = named_shares(documents, rules)
    held = round(documents * fraction)
    in_dev, in_vault = round(held * dev), round(held * vault)
    return HoldoutParts(held - in_dev - in_vault, in_dev, in_vault)
