"""How fast a folder of pages is read, beside trafilatura alone, and how many words are kept.

python -m tests.bench.data.extraction [FOLDER]

The pages are those of Debian's handbook where its package is installed, else some that are written
here. The goal counts seconds of processors, of this process and those it starts: each core's.
"""

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from trafilatura import extract
from trafilatura.utils import load_html

from jupiterd.processor_limits import usable_cores
from jupiterd.workers.data.extract.extraction import Extractor
from jupiterd.workers.data.extract.extractor_pool import ExtractorPool

HANDBOOK = Path("/usr/share/doc/debian-handbook/html/en-US")
PAGES = 120
SENTENCE = "A board that was measured with care fits where another one, cut by eye, doesn't. "
GOAL_SPEED, GOAL_WORDS = 0.8, 0.99
_WORD = re.compile(r"[^\W_]+")


def pages(folder: Path) -> list[bytes]:
    """Return the pages of a folder, or pages of a usual size where there is none."""
    if folder.is_dir():
        return [path.read_bytes() for path in sorted(folder.glob("*.html"))[:PAGES]]
    return [_page(number) for number in range(PAGES)]


def _page(number: int) -> bytes:
    part = f"<h2>Part</h2><p>{SENTENCE * 6}</p><ul><li><code>f({number})</code> cuts it.</li></ul>"
    menu = "".join(f'<li><a href="/{n}">Chapter {n}</a></li>' for n in range(30))
    body = f"<nav><ul>{menu}</ul></nav><main><h1>Page {number}</h1>{part * 12}</main>"
    return f"<html><head><title>{number}</title></head><body>{body}</body></html>".encode()


def print_extraction(trials: int = 3, folder: Path = HANDBOOK) -> None:
    """Print all figures."""
    found = pages(folder)
    with Extractor() as extractor:
        extractor.read("html", found[0])  # its libraries are there
        alone_s = min(_seconds(lambda: _alone(found)) for _ in range(trials))
        ours_s = min(_seconds(lambda: _one_by_one(extractor, found)) for _ in range(trials))
    share = alone_s / ours_s
    print(
        f"extraction of {len(found)} pages, each core: {len(found) / ours_s:.0f} pages/s, "
        f"trafilatura alone {len(found) / alone_s:.0f}: {share:.2f} x   goal >= {GOAL_SPEED}"
    )
    wall_s = min(_on_all_cores(found) for _ in range(trials))
    print(f"extraction on {usable_cores()} cores: {len(found) / wall_s:.0f} pages/s by the clock")
    kept, known = _words(found)
    print(f"words kept of its plain text: {kept / known:.4%}   goal >= {GOAL_WORDS:.0%}")


def _alone(found: list[bytes]) -> None:
    for data in found:
        extract(load_html(data), output_format="markdown", include_comments=False)


def _one_by_one(extractor: Extractor, found: list[bytes]) -> None:
    for data in found:
        extractor.read("html", data)


def _seconds(work: Callable[[], None]) -> float:
    """Return the seconds of processors that work takes, here and in the extraction process."""
    began_s = time.process_time() + _of_children_s()
    work()
    return time.process_time() + _of_children_s() - began_s


def _of_children_s() -> float:
    import psutil

    times = [child.cpu_times() for child in psutil.Process(os.getpid()).children()]
    return sum(each.user + each.system for each in times)


def _on_all_cores(found: list[bytes]) -> float:
    with ExtractorPool() as pool:
        for future in [pool.begin("html", found[0], "") for _ in range(2 * pool.cores)]:
            future.result()
        began_s = time.monotonic()
        for future in [pool.begin("html", data, "") for data in found]:
            future.result()
        return time.monotonic() - began_s


def _words(found: list[bytes]) -> tuple[int, int]:
    """Return how many words of trafilatura's plain text are kept, and how many it has."""
    shares = list(_shares(found[:60]))
    return sum(kept for kept, _ in shares), sum(known for _, known in shares)


def _shares(found: list[bytes]) -> Iterator[tuple[int, int]]:
    with Extractor() as extractor:
        for data in found:
            plain = Counter(_WORD.findall(extract(load_html(data), include_comments=False) or ""))
            ours = Counter(_WORD.findall(extractor.read("html", data).text))
            yield (plain & ours).total(), plain.total()


if __name__ == "__main__":
    print_extraction(folder=Path(sys.argv[1]) if len(sys.argv) > 1 else HANDBOOK)
