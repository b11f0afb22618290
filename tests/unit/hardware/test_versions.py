"""Which versions are installed here."""

import platform

import pytest

from jupiterd import __version__
from jupiterd.hardware import versions as module
from jupiterd.hardware.versions import versions


def test_what_is_installed_is_told_and_nothing_else() -> None:
    found = versions()
    assert found["jupiterd"] == __version__
    assert found["python"] == platform.python_version()
    assert found["system"].startswith(platform.system())
    assert all(found.values())


def test_a_package_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGES", ("psutil", "no-such-package"))
    assert "psutil" in versions()
    assert "no-such-package" not in versions()


def test_the_driver_is_told_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        def nvmlInit(self) -> None:  # noqa: N802
            pass

        def nvmlShutdown(self) -> None:  # noqa: N802
            pass

        def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
            return "560.35.03"

    monkeypatch.setattr(module, "load_nvml", Driver)
    assert versions()["nvidia_driver"] == "560.35.03"
