"""Services to ask for in tests."""

from dataclasses import replace
from pathlib import Path

from jupiterd.service.service_request import SYSTEM_STATE_DIR, SYSTEM_USER, Scope, ServiceRequest

OF_THE_MACHINE = ServiceRequest(
    scope=Scope.SYSTEM,
    program=("/usr/local/bin/jupiterd",),
    arguments=(),
    state_dir=SYSTEM_STATE_DIR,
    user=SYSTEM_USER,
    home=SYSTEM_STATE_DIR,
)
OF_A_USER = ServiceRequest(
    scope=Scope.USER,
    program=("/home/ada/.local/bin/jupiterd",),
    arguments=(),
    state_dir=None,
    user="ada",
    home=Path("/home/ada"),
)
ON_A_MAC = replace(
    OF_A_USER,
    scope=Scope.SYSTEM,
    program=("/Users/ada/.local/bin/jupiterd",),
    home=Path("/Users/ada"),
)
