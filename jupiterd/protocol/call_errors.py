"""How a JupiterError crosses a gRPC call: status, message, and code and hint as trailing metadata.

Owns both directions. Doesn't know any service. grpc is imported where it is needed.
"""

from typing import TYPE_CHECKING, Any

from jupiterd.errors import JupiterError, PeerUnreachableError, TimedOutError, from_wire

if TYPE_CHECKING:
    import grpc.aio

CODE_KEY = "jupiter-code"
HINT_KEY = "jupiter-hint-bin"


async def abort(context: "grpc.aio.ServicerContext[Any, Any]", error: JupiterError) -> None:
    """End the call that `context` serves with this error; never returns."""
    import grpc

    await context.abort(
        grpc.StatusCode[error.grpc_status],
        error.message,
        ((CODE_KEY, error.code), (HINT_KEY, error.hint.encode())),
    )


def from_rpc(error: "grpc.aio.AioRpcError", whom: str) -> JupiterError:
    """Rebuild the error that `whom` answered with, or say that it couldn't be reached."""
    import grpc

    trailing = dict(error.trailing_metadata() or ())
    code, hint = trailing.get(CODE_KEY), trailing.get(HINT_KEY, b"")
    if isinstance(code, str):
        text = hint if isinstance(hint, str) else bytes(hint).decode("utf-8", "replace")
        return from_wire(code, error.details() or code, text)
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TimedOutError(f"{whom} didn't answer in time")
    return PeerUnreachableError(f"{whom} can't be reached: {error.details() or error.code().name}")
