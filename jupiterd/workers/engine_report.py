"""What an engine says of itself on this machine: `python -m jupiterd.workers.engine_report torch`.

Owns asking torch and MLX, and a sum so small that nobody notices. Prints one line of JSON. Doesn't
know what follows from the answers; the doctor judges them.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

SIDE = 64
"""Of the matrices of ones that are multiplied."""

Report = dict[str, Any]


def torch_report(computes: bool) -> Report:  # noqa: FBT001
    """Return torch's build, its devices, and whether they multiply as they should."""
    torch: Any = importlib.import_module("torch")
    devices = torch.cuda.device_count() if torch.version.cuda else 0
    report: Report = {
        "version": torch.__version__,
        "built_for_cuda": torch.version.cuda,
        "is_usable": bool(torch.version.cuda) and torch.cuda.is_available(),
        "architectures": torch.cuda.get_arch_list() if torch.version.cuda else [],
        "has_nccl": torch.distributed.is_available() and torch.distributed.is_nccl_available(),
        "error_of_sum": _reason(lambda: _multiply_torch(torch, "cpu")) if computes else None,
        "devices": [],
    }
    if torch.version.cuda and not report["is_usable"]:
        report["why_not"] = _reason(torch.cuda.init)
    if report["is_usable"]:
        report["devices"] = [_cuda_device(torch, index, computes) for index in range(devices)]
    if report["is_usable"] and report["has_nccl"]:
        report["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        report["nccl_error"] = _reason(lambda: _sum_over_nccl(torch)) if computes else None
    return report


def mlx_report(computes: bool) -> Report:  # noqa: FBT001
    """Return MLX's versions, whether Metal works, and whether it multiplies as it should."""
    from importlib import metadata

    mx: Any = importlib.import_module("mlx.core")
    return {
        "version": metadata.version("mlx"),
        "mlx_lm": metadata.version("mlx-lm") if find_spec("mlx_lm") else None,
        "metal": bool(mx.metal.is_available()),
        "device": str(mx.default_device()),
        "error_of_sum": _reason(lambda: _multiply_mlx(mx)) if computes else None,
    }


REPORTS: dict[str, Callable[[bool], Report]] = {"torch": torch_report, "mlx": mlx_report}


def report_of(engine: str, computes: bool) -> Report:  # noqa: FBT001
    """Return the engine's report; `missing` where it isn't installed, `error` where it fails."""
    if find_spec(engine) is None:
        return {"missing": True}
    try:
        return REPORTS[engine](computes)
    except Exception as error:  # noqa: BLE001 - libraries fail in every way there is
        return {"error": f"{type(error).__name__}: {error}"}


def _cuda_device(torch: Any, index: int, computes: bool) -> Report:  # noqa: ANN401, FBT001
    major, minor = torch.cuda.get_device_capability(index)
    return {
        "name": torch.cuda.get_device_name(index),
        "capability": [major, minor],
        "error_of_sum": _reason(lambda: _multiply_torch(torch, f"cuda:{index}"))
        if computes
        else None,
    }


def _multiply_torch(torch: Any, device: str) -> None:  # noqa: ANN401
    ones = torch.ones(SIDE, SIDE, device=device)
    _expect(float((ones @ ones).sum()))


def _multiply_mlx(mx: Any) -> None:  # noqa: ANN401
    ones = mx.ones((SIDE, SIDE))
    _expect(float((ones @ ones).sum().item()))


def _expect(total: float) -> None:
    if total != SIDE**3:
        raise ArithmeticError(f"a product of ones adds up to {total:g} instead of {SIDE**3}")


def _sum_over_nccl(torch: Any) -> None:  # noqa: ANN401
    """Let one rank sum with itself: that loads the library and makes a communicator."""
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
    try:
        ones = torch.ones(SIDE, device="cuda:0")
        torch.distributed.all_reduce(ones)
        if float(ones.sum()) != SIDE:
            raise ArithmeticError("NCCL sums wrongly")
    finally:
        torch.distributed.destroy_process_group()


def _reason(attempt: Callable[[], object]) -> str | None:
    """Return why something fails; None where it doesn't."""
    try:
        attempt()
    except Exception as error:  # noqa: BLE001 - the answer is the error
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return None


def main() -> None:
    """Print the report of the engine that is named."""
    engine, how = sys.argv[1], sys.argv[2]
    print(json.dumps(report_of(engine, how == "compute")), flush=True)  # noqa: T201
    os._exit(0)  # nothing is left to be said, and libraries' threads may wait for each other


if __name__ == "__main__":
    main()
