"""Several extraction processes at work at once, one for each core of this machine.

Owns the threads that wait for them. Doesn't know documents, or in which order they are wanted.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from jupiterd.processor_limits import usable_cores
from jupiterd.workers.data.extract.extraction import Extracted, ExtractionLimits, Extractor


class ExtractorPool:
    """Takes text out of many documents; a context manager. Processes start when they are needed."""

    def __init__(
        self, language: str = "", limits: ExtractionLimits | None = None, cores: int = 0
    ) -> None:
        """Start nothing yet.

        Args:
            language: what most documents are written in.
            limits: what a document may cost.
            cores: how many processes at the most; 0: one for each core.
        """
        self.cores = cores or usable_cores()
        self._threads = ThreadPoolExecutor(self.cores, thread_name_prefix="extraction")
        self._extractors = [Extractor(limits, language) for _ in range(self.cores)]
        self._idle: SimpleQueue[Extractor] = SimpleQueue()
        for extractor in self._extractors:
            self._idle.put(extractor)

    def begin(self, form: str, data: bytes, name: str) -> "Future[Extracted]":
        """Begin with a document; what comes of it, or UnreadableError, is in the future."""
        return self._threads.submit(self._read, form, data, name)

    def _read(self, form: str, data: bytes, name: str) -> Extracted:
        extractor = self._idle.get()
        try:
            return extractor.read(form, data, name=name)
        finally:
            self._idle.put(extractor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for extractor in self._extractors:
            extractor.stop()  # nobody wants to know any more what a document says
        self._threads.shutdown()
        for extractor in self._extractors:
            extractor.__exit__(kind, error, trace)
