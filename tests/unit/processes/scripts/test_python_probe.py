import platform
import sys
from pathlib import Path

from jupiterd.processes.scripts.python_probe import PythonVersion, is_python, python_version


def test_a_python_tells_its_version_and_its_frameworks():
    told = python_version(sys.executable)
    assert told.version == platform.python_version()
    assert set(told.packages) <= {"torch", "mlx"}


def test_what_does_not_answer_as_a_python_tells_nothing(tmp_path: Path):
    liar = tmp_path / "python"
    liar.write_text("#!/bin/sh\necho '[]'\n")
    liar.chmod(0o755)
    for program in ("/no/such/python", "/bin/false", str(liar)):
        assert python_version(program) == PythonVersion("")


def test_a_python_is_known_by_its_name():
    assert is_python("/opt/bin/python3.12")
    assert not is_python("accelerate")
