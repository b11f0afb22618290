"""The name of a launch's run, which all its attempts share.

Pure. An order's id is that name, a dot and the number of the attempt.
"""


def run_name(order_id: str) -> str:
    """Return the name of the run that an order belongs to."""
    return order_id.rpartition(".")[0] or order_id


def folder_of_run(folders: str, order_id: str) -> str:
    """Return the working folder of a run, below the machine's folder for such folders."""
    return f"{folders}/{run_name(order_id)}"
