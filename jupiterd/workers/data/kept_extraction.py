"""Extraction that isn't done twice: what was taken out of a document is kept beside the queue.

Owns that memory, and when to give a document up: one that this worker was killed over several
times. Doesn't know documents, or how text is taken out of them.
"""

from typing import Any, cast

import msgpack
from blake3 import blake3

from jupiterd.workers.data.extraction import Extracted, Extractor, extractor_of
from jupiterd.workers.data.skips import SkipReason, UnreadableError
from jupiterd.workers.data.work_queue import WorkQueue

MAX_TRIES = 3


class KeptExtraction:
    """An extractor with a memory that outlives this process."""

    def __init__(self, extractor: Extractor, queue: WorkQueue) -> None:
        self._extractor = extractor
        self._queue = queue

    def read(
        self, form: str, data: bytes, url: str = "", charset: str = "", name: str = ""
    ) -> Extracted:
        """Return what a document says.

        Raises:
            UnreadableError: it can't be read, or costs too much.
        """
        if form == "text":
            return self._extractor.read(form, data, url, charset, name)
        key = f"{form} {blake3(data).hexdigest()} {charset} {url}"  # links are relative to it
        kept = self._queue.result(key)
        if kept is None:
            kept = self._done(key, form, data, (url, charset, name))
            self._queue.finish([(key, kept)])
        return _unpacked(form, kept)

    def _done(self, key: str, form: str, data: bytes, how: tuple[str, str, str]) -> bytes:
        if self._queue.take(key).tries > MAX_TRIES:
            return _packed({"reason": str(SkipReason.GAVE_UP)})
        try:
            found = self._extractor.read(form, data, *how)
        except UnreadableError as error:
            return _packed({"reason": str(error.reason)})
        reason = {} if found.reason is None else {"reason": str(found.reason)}
        return _packed({"text": found.text, "told": dict(found.told), **reason})


def _packed(fields: dict[str, Any]) -> bytes:
    return cast("bytes", msgpack.packb(fields))


def _unpacked(form: str, kept: bytes) -> Extracted:
    fields = cast("dict[str, Any]", msgpack.unpackb(kept))
    reason = SkipReason(fields["reason"]) if "reason" in fields else None
    if "text" not in fields:
        raise UnreadableError(reason or SkipReason.BROKEN)
    return Extracted(fields["text"], extractor_of(form), fields["told"], reason)
