"""Extraction that isn't done twice: what was taken out of a document is kept beside the queue.

Owns that memory, and when to give a document up: one that this worker was killed over several
times. Doesn't know documents, or how text is taken out of them.
"""

from concurrent.futures import Future
from typing import Any, cast

import msgpack
from blake3 import blake3

from jupiterd.workers.data.collect.work_queue import WorkQueue
from jupiterd.workers.data.extract.extraction import Extracted, Extractor, extractor_of
from jupiterd.workers.data.extract.extractor_pool import ExtractorPool
from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_TRIES = 3
"""Of a document by itself: one that was begun ahead, beside others, may be blameless."""

_AHEAD_OF_CORE = 4


class ExtractionCache:
    """An extractor with a memory that outlives this process."""

    def __init__(
        self, extractor: Extractor, queue: WorkQueue, pool: ExtractorPool | None = None
    ) -> None:
        """Take what does the work.

        Args:
            extractor: reads one document after the other.
            queue: remembers.
            pool: reads ahead, on all cores; None: nothing is begun ahead.
        """
        self._extractor = extractor
        self._queue = queue
        self._pool = pool
        self._max_tries = MAX_TRIES if pool is None else MAX_TRIES + 1
        self._begun: dict[str, Future[Extracted]] = {}

    @property
    def read_ahead(self) -> int:
        """Return how many documents are worth beginning before they are wanted."""
        return 0 if self._pool is None else _AHEAD_OF_CORE * self._pool.cores

    def begin(self, form: str, data: bytes, name: str) -> None:
        """Begin with a document that `read` will be asked for; it is for one thread, as all here.

        One over which this worker has been killed is left for `read`: alone, it alone is to blame.
        """
        key = _key(form, data, "", "")
        if self._pool is None or key in self._begun or self._queue.result(key) is not None:
            return
        if form != "text" and self._queue.take(key).tries > 1:
            self._queue.give_back([key])
            return
        self._begun[key] = self._pool.begin(form, data, name)

    def read(
        self, form: str, data: bytes, url: str = "", charset: str = "", name: str = ""
    ) -> Extracted:
        """Return what a document says.

        Raises:
            UnreadableError: it can't be read, or costs too much.
        """
        key = _key(form, data, url, charset)
        begun = self._begun.pop(key, None)
        if form == "text":  # done again sooner than it is looked up
            if begun is not None:
                return begun.result()
            return self._extractor.read(form, data, url, charset, name)
        packed = self._queue.result(key)
        if packed is None:
            packed = self._done(begun, key, (form, data, url, charset, name))
            self._queue.finish([(key, packed)])
        return _unpacked(form, packed)

    def _done(
        self,
        begun: "Future[Extracted] | None",
        key: str,
        request: tuple[str, bytes, str, str, str],
    ) -> bytes:
        if begun is None and self._queue.take(key).tries > self._max_tries:
            return _packed({"reason": str(SkipReason.GAVE_UP)})
        try:
            found = self._extractor.read(*request) if begun is None else begun.result()
        except UnreadableError as error:
            return _packed({"reason": str(error.reason), "detail": error.detail})
        reason = {} if found.reason is None else {"reason": str(found.reason)}
        return _packed({"text": found.text, "told": dict(found.metadata), **reason})


def _key(form: str, data: bytes, url: str, charset: str) -> str:
    return f"{form} {blake3(data).hexdigest()} {charset} {url}"  # links are relative to it


def _packed(fields: dict[str, Any]) -> bytes:
    return cast("bytes", msgpack.packb(fields))


def _unpacked(form: str, packed: bytes) -> Extracted:
    fields = cast("dict[str, Any]", msgpack.unpackb(packed))
    reason = SkipReason(fields["reason"]) if "reason" in fields else None
    if "text" not in fields:
        raise UnreadableError(reason or SkipReason.BROKEN, detail=fields.get("detail", ""))
    return Extracted(fields["text"], extractor_of(form), fields["told"], reason)
