"""All clean text of a round at once: of each document what a plan of the holdout needs of it.

Owns finding near-duplicates among all of it, and telling copies that are equal. None of the text is
held. Doesn't know what is planned (`data.holdout_choice`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.holdout.clusters import cluster_path
from jupiterd.cycle.holdout.holdout_plan import Collected
from jupiterd.workers.data.dedup.near_duplicates import NearDuplicates
from jupiterd.workers.progress import Progress, silent


@dataclass(frozen=True)
class CollectedText:
    """What was looked at, in the order in which it came."""

    documents: list[Collected]
    sources: list[str]
    """Of each document the name of its source."""
    held_out_before: frozenset[int]
    """Groups of what was held out before."""

    @property
    def size_bytes(self) -> int:
        """Return the size of all of it."""
        return sum(each.size_bytes for each in self.documents)

    @classmethod
    def of(
        cls,
        samples: Iterable[Sample],
        held_out_before: Sequence[Sample] = (),
        *,
        is_code: bool,
        progress: Progress = silent,
    ) -> "CollectedText":
        """Look at samples, which come by their ids, beside those that were held out before."""
        near = NearDuplicates(is_code=is_code)
        number_of: dict[str, int] = {}
        for sample in held_out_before:
            number_of[sample.id] = len(number_of)
            near.add(sample.text)
        held = count = len(number_of)
        last = ""
        numbers: list[int] = []
        found: list[Collected] = []
        sources: list[str] = []
        for number, sample in enumerate(samples, 1):
            if sample.id in number_of:
                numbers.append(number_of[sample.id])
            else:
                if sample.id != last:  # equal texts follow each other
                    near.add(sample.text)
                    count, last = count + 1, sample.id
                numbers.append(count - 1)
            path = cluster_path(sample.source_uri, sample.cluster_id)
            found.append(Collected(path, len(sample.text.encode()), 0))
            sources.append(sample.source)
            progress(number, 0, "samples")
        groups = near.groups()
        documents = [
            Collected(each.path, each.size_bytes, groups[number])
            for number, each in zip(numbers, found, strict=True)
        ]
        return cls(documents, sources, frozenset(groups[:held]))
