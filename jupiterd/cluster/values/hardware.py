"""What a machine is, as its members are told.

Owns the record and its plain form. Doesn't know how anything is probed.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final, cast

MAX_VERSIONS: Final = 8
"""That a member tells; there are three."""
MAX_VERSION_CHARACTERS: Final = 64
MAX_HOST_CHARACTERS: Final = 32

_LARGE_MAC_BYTES: Final = 33 << 30


def lent_to_gpu_bytes(ram_bytes: int) -> int:
    """Return how much of a Mac's memory macOS lets its GPU use, unless somebody has set another.

    Metal's recommendedMaxWorkingSetSize, as people have seen it: 10,923 MiB of 16 GiB and 21,845 of
    32 (two thirds), 49,152 of 64 and 73,728 of 96 (three quarters).
    """
    if ram_bytes < _LARGE_MAC_BYTES:
        return ram_bytes * 2 // 3
    return ram_bytes * 3 // 4


@dataclass(frozen=True)
class Gpu:
    """One accelerator."""

    name: str
    uuid: str
    memory_bytes: int
    kind: str
    """`cuda` or `metal`."""


@dataclass(frozen=True)
class Hardware:
    """One machine; told to members over TLS only."""

    system: str
    """`Linux` or `Darwin`."""
    machine: str
    """`x86_64`, `aarch64` or `arm64`."""
    cpu: str
    cores: int
    ram_bytes: int
    gpus: tuple[Gpu, ...] = ()
    engines: tuple[str, ...] = ()
    """Frameworks that are installed: `torch`, `mlx`; found without importing them."""
    on_mains: bool = True
    devices: tuple[str, ...] = ()
    """Where torch ranks compute, one each: `cpu` or `cuda:0`; empty: one rank, on the CPU."""
    versions: tuple[tuple[str, str], ...] = ()
    """(program or framework, its version), such as (`torch`, `2.13.0`); empty: it wasn't told."""
    can_answer: bool = False
    """An engine that answers with models is installed; older members don't tell."""
    can_evaluate: bool = False
    """It can be asked what tasks ask a model; older members don't tell."""
    trains_adapters: bool = False
    """Its build can train an adapter beside a frozen model; older members don't tell."""
    trains_dropout: bool = False
    """That build knows an adapter's dropout, and DoRA, too; older members don't tell."""
    has_bitsandbytes: bool = False
    """torch can quantize there, by that package; older members don't tell."""
    cut_engines: tuple[str, ...] = ()
    """On which engines its build can train a part of a model; older members tell of none."""
    cut_base_engines: tuple[str, ...] = ()
    """On which its build can hold a part of the frozen model beside an adapter; the same."""
    host: str = ""
    """What all programs of one running machine say, and no other's do; empty: nobody knows."""

    @property
    def working_gpus(self) -> tuple[Gpu, ...]:
        """Return the accelerators that work is computed on.

        A CUDA device isn't one where all ranks are on the CPU: torch can't use it, or the owner of
        an older member's machine doesn't want it to.
        """
        is_on_cpu = bool(self.devices) and not any(map(_is_of_cuda, self.devices))
        return tuple(gpu for gpu in self.gpus if not (is_on_cpu and _is_of_cuda(gpu.kind)))

    @property
    def program(self) -> str:
        """Return the version of Jupiter that runs there; empty where it wasn't told."""
        return dict(self.versions).get("jupiterd", "")

    def to_plain(self) -> dict[str, Any]:
        """Return nested dicts and lists, for JSON and msgpack."""
        return asdict(self) | {
            "gpus": [asdict(gpu) for gpu in self.gpus],
            "engines": list(self.engines),
            "devices": list(self.devices),
            "cut_engines": list(self.cut_engines),
            "cut_base_engines": list(self.cut_base_engines),
            "versions": dict(self.versions),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Hardware":
        """Rebuild the record; raises TypeError, ValueError or KeyError where it isn't one.

        What a newer Jupiter may say beyond it is left out.
        """
        return cls(
            system=str(plain["system"]),
            machine=str(plain["machine"]),
            cpu=str(plain["cpu"]),
            cores=_whole(plain["cores"]),
            ram_bytes=_whole(plain["ram_bytes"]),
            gpus=tuple(
                Gpu(str(g["name"]), str(g["uuid"]), _whole(g["memory_bytes"]), str(g["kind"]))
                for g in plain["gpus"]
            ),
            engines=tuple(str(engine) for engine in plain["engines"]),
            on_mains=bool(plain["on_mains"]),
            devices=tuple(str(device) for device in plain.get("devices", ())),
            versions=_versions(plain.get("versions")),
            can_answer=plain.get("can_answer") is True,
            can_evaluate=plain.get("can_evaluate") is True,
            trains_adapters=plain.get("trains_adapters") is True,
            trains_dropout=plain.get("trains_dropout") is True,
            has_bitsandbytes=plain.get("has_bitsandbytes") is True,
            cut_engines=tuple(str(engine) for engine in plain.get("cut_engines", ())),
            cut_base_engines=tuple(str(engine) for engine in plain.get("cut_base_engines", ())),
            host=str(plain.get("host", ""))[:MAX_HOST_CHARACTERS],
        )


def _is_of_cuda(name: str) -> bool:
    return name.startswith("cuda")


def _versions(document: object) -> tuple[tuple[str, str], ...]:
    """Return what is told of versions, cut short; nothing where it isn't that."""
    if not isinstance(document, Mapping):
        return ()
    rows = islice(cast("Mapping[object, object]", document).items(), MAX_VERSIONS)
    return tuple(
        (str(name)[:MAX_VERSION_CHARACTERS], str(version)[:MAX_VERSION_CHARACTERS])
        for name, version in rows
    )


def _whole(value: object) -> int:
    """Return a whole number; as text it might have thousands of digits, and break who divides."""
    if not isinstance(value, int):
        raise TypeError(f"{type(value).__name__} is no whole number")
    return value
