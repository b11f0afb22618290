"""What accelerators can do at best, for how much of that a training uses (MFU).

Owns the table, and how a name is looked up in it. Pure. Doesn't know what is computed there.

A number is dense multiply-adds, counted as two operations each, of 16-bit floats with sums in fp32,
at the boost clock: bf16, or fp16 where there is none (V100, T4). Sources, all of the maker:

    data center   data sheets of the product; where they tell the rate with sparsity, half of it
    GeForce       appendices of the architecture white papers (Turing, Ampere GA102, Ada, Blackwell)

A CPU isn't here: its peak depends on clocks and widths that nobody tells. Nor are Apple's GPUs, for
which Apple publishes none at 16 bits; nor laptops' GPUs, whose clocks their makers choose.
"""

from collections.abc import Mapping
from typing import Final

TERA: Final = 1e12

USED_OF_PEAK: Final = 0.3
"""What training makes of a GPU's peak, for a guess."""

CORE_FLOPS_PER_S: Final = 2e10
APPLE_FLOPS_PER_S: Final = 2e12
"""Of a core, and of an Apple GPU, as they train: for the same guess."""

DATA_CENTER: Final[Mapping[str, float]] = {
    "B200": 2250.0,
    "GH200": 989.4,
    "H200": 989.4,
    "H100 NVL": 835.5,
    "H100 PCIe": 756.5,
    "H100": 989.4,
    "H20": 148.0,
    "A100": 312.0,
    "A40": 149.7,
    "A30": 165.0,
    "A10": 125.0,
    "L40S": 362.0,
    "L40": 181.0,
    "L4": 121.0,
    "RTX 6000 Ada": 364.2,
    "RTX A6000": 154.8,
    "RTX A5000": 111.1,
    "RTX A4000": 76.7,
    "V100": 125.0,
    "T4": 65.0,
}

GEFORCE: Final[Mapping[str, float]] = {
    "RTX 5090": 209.5,
    "RTX 5080": 112.6,
    "RTX 5070 Ti": 87.9,
    "RTX 5070": 61.7,
    "RTX 4090": 165.2,
    "RTX 4080 SUPER": 104.4,
    "RTX 4080": 97.5,
    "RTX 4070 Ti SUPER": 88.2,
    "RTX 4070 Ti": 80.2,
    "RTX 4070 SUPER": 71.0,
    "RTX 4070": 58.3,
    "RTX 4060 Ti": 44.1,
    "RTX 4060": 30.2,
    "RTX 3090 Ti": 80.0,
    "RTX 3090": 71.0,
    "RTX 3080 Ti": 68.2,
    "RTX 3080": 59.5,
    "RTX 3070 Ti": 43.5,
    "RTX 3070": 40.6,
    "RTX 3060 Ti": 32.4,
    "RTX 3060": 25.5,
    "RTX 2080 Ti": 53.8,
}

TFLOPS: Final = {**DATA_CENTER, **GEFORCE}
"""Words of a GPU's name -> what it can do, in 10^12 operations per second."""

ANOTHER_CHIP: Final = ("laptop", "max-q", "mobile")
"""With any of these in its name a GPU is another product than one without."""


def peak_flops_per_s(name: str) -> float | None:
    """Return what a GPU can do at best, by its driver's name for it; None where nobody knows.

    The entry with the most words counts, each of which must be in the name: `NVIDIA H100 PCIe`
    isn't an `H100`.
    """
    lower_name = name.lower()
    if any(sign in lower_name for sign in ANOTHER_CHIP):
        return None
    words = frozenset(lower_name.replace("-", " ").split())
    known = {entry: frozenset(entry.lower().split()) for entry in TFLOPS}
    fitting = [entry for entry, needed in known.items() if needed <= words]
    best = max(fitting, key=lambda entry: len(known[entry]), default=None)
    return None if best is None else TFLOPS[best] * TERA


def utilisation(
    tokens_per_s: float | None, flops_per_token: float | None, peak: float | None
) -> float | None:
    """Return the share of the peak that useful work takes (MFU); None where one isn't known."""
    if tokens_per_s is None or not flops_per_token or not peak:
        return None
    return tokens_per_s * flops_per_token / peak
