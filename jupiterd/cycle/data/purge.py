"""Which samples a purge takes: those of a source, and everything that was made from them.

Owns that decision. Doesn't know files, or who asked for the purge.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from jupiterd.cycle.base.web_addresses import normalised
from jupiterd.cycle.data.lineage import Sample

_PARTING = "/:#?"
"""What parts the names in an address."""


def is_of(sample: Sample, source: str) -> bool:
    """Say whether a sample comes from a source: its name in the domain file, or an address.

    An address, such as https://example.org/docs, stands for everything below it too: that of a
    repository or a table for all its files or rows.
    """
    return sample.source == source or bool(purged_at(sample.source_uri, (source,)))


def purged_at(uri: str, sources: Iterable[str]) -> str:
    """Return the first of these sources that is an address at which that lies; empty: none is."""
    return next((each for each in sources if ":" in each and _lies_at(uri, each)), "")


def _lies_at(uri: str, address: str) -> bool:
    uri, at = _written(uri), _written(address)
    if "#" in at and "#" not in uri:  # a place on a page: that page is meant, nothing below it
        return uri == at.partition("#")[0]
    return uri == at or (uri.startswith(at) and (at[-1] in _PARTING or uri[len(at)] in _PARTING))


@lru_cache(maxsize=4096)
def _written(address: str) -> str:
    """Return an address as all are compared; a repository is written as in the domain file."""
    place, mark, rest = address.strip().removeprefix("git+").partition("#")
    return f"{normalised(place) or place}{mark}{rest}"


class Purge:
    """Decides on one sample after the other, once `learn` was shown all of them."""

    def __init__(self, sources: Iterable[str] = ()) -> None:
        self.sources = tuple(sorted(sources))
        self._taken: dict[str, str] = {}
        """Id of a sample -> the source that it, or what it was made from, comes from."""

    def learn(self, samples: Iterable[Sample]) -> None:
        """Look at all samples, in any order, for those that are taken and what was made of them."""
        if not self.sources:
            return
        children: list[tuple[str, tuple[str, ...]]] = []
        for sample in samples:
            if source := self._source_of(sample):
                self._taken[sample.id] = source
            elif sample.parents:
                children.append((sample.id, sample.parents))
        while rest := [each for each in children if not self._inherits(*each)]:
            if len(rest) == len(children):
                return
            children = rest

    def _inherits(self, sample_id: str, parents: tuple[str, ...]) -> bool:
        source = self._of_parents(parents)
        if source:
            self._taken[sample_id] = source
        return bool(source)

    def _of_parents(self, parents: tuple[str, ...]) -> str:
        return next((self._taken[each] for each in parents if each in self._taken), "")

    def _source_of(self, sample: Sample) -> str:
        return next((source for source in self.sources if is_of(sample, source)), "")

    def hit(self, sample: Sample) -> str:
        """Return the source for which this sample is taken; empty: it stays.

        A real text that another source has, too, stays.
        """
        return self._source_of(sample) or self._of_parents(sample.parents)

    def left(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield the samples that stay."""
        return (sample for sample in samples if not self.hit(sample))
