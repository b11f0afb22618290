"""Which variables people may give the ranks of a machine."""

from pathlib import Path

import pytest

from jupiterd.daemon.runtime.settings import load_settings
from jupiterd.errors import InvalidSettingError
from jupiterd.processes.rank_variables import is_rank_variable, read_rank_variables


@pytest.mark.parametrize(
    "given",
    [
        {"NCCL_IB_HCA": "mlx5_0:1", "NCCL_P2P_DISABLE": 1, "GLOO_SOCKET_IFNAME": "ib0"},
        "NCCL_IB_HCA=mlx5_0:1, NCCL_P2P_DISABLE=1,GLOO_SOCKET_IFNAME=ib0",
    ],
    ids=["settings", "environment"],
)
def test_names_of_the_three_libraries_are_read(given: object) -> None:
    assert read_rank_variables(given) == {
        "NCCL_IB_HCA": "mlx5_0:1",
        "NCCL_P2P_DISABLE": "1",
        "GLOO_SOCKET_IFNAME": "ib0",
    }


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"LD_PRELOAD": "/tmp/x.so"}, r"expected names of NCCL_\*, GLOO_\*, CUDA_\*.*'LD_PRELOAD'"),
        ({"nccl_debug": "INFO"}, "expected names of"),
        ({"NCCL_": "1"}, "expected names of"),
        ({"XNCCL_DEBUG": "INFO"}, "expected names of"),
        ({"CUDA_VISIBLE_DEVICES": "0"}, "`devices` says where ranks compute"),
        ({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, "the numbers of nvidia-smi"),
        ({"NCCL_DEBUG": True}, "expected text or a whole number for NCCL_DEBUG, got 'True'"),
        ({"NCCL_DEBUG": None}, "expected text or a whole number for NCCL_DEBUG"),
        ({"NCCL_DEBUG": "a\0b"}, "expected text or a whole number for NCCL_DEBUG"),
        ({"NCCL_DEBUG": "x" * 1025}, "expected text or a whole number for NCCL_DEBUG"),
        ("NCCL_DEBUG", "expected text or a whole number for NCCL_DEBUG, got ''"),
        ([1], "expected variables, such as"),
    ],
)
def test_what_is_none_of_them_is_refused_with_what_may_be(given: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_rank_variables(given)


def test_they_stand_in_jupiter_yaml_and_a_wrong_one_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "jupiter.yaml"
    file.write_text("threads: 2\nenv:\n  NCCL_P2P_LEVEL: NVL\n")
    assert load_settings({}, {}, file)[0].env == {"NCCL_P2P_LEVEL": "NVL"}
    file.write_text("threads: 2\nenv:\n  PATH: /tmp\n")
    with pytest.raises(InvalidSettingError, match=r"jupiter\.yaml:2.*'PATH'"):
        load_settings({}, {}, file)
    assert load_settings({}, {"JUPITER_ENV": "NCCL_DEBUG=INFO"}, None)[0].env == {
        "NCCL_DEBUG": "INFO"
    }


def test_no_setting_is_the_usual_case() -> None:
    assert load_settings({}, {}, None)[0].env == {}
    assert not is_rank_variable("CUDA_VISIBLE_DEVICES")
