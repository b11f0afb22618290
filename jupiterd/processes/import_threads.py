"""The variables that keep libraries from starting threads while a nursery imports them.

Owns their names and values. A process with more than one thread can't be forked whole. Doesn't know
how many threads a worker computes with: it gets its own variables after the fork.
"""

from typing import Final

THREAD_COUNTS: Final = (
    "OMP_NUM_THREADS",  # libgomp: torch's own; numexpr and OpenBLAS, where theirs are absent
    "OPENBLAS_NUM_THREADS",  # numpy and scipy each bring an OpenBLAS that starts all at import
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",  # tokenizers
)
"""Variables with a number of threads, each read by a library once."""

ONE_THREAD: Final = {
    **dict.fromkeys(THREAD_COUNTS, "1"),
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # pyarrow's jemalloc starts one at import
}
"""What a nursery has while it imports."""
