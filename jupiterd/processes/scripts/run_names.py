"""The name of a launch's run, which its tries have in common.

Pure. An order's id is that name, a dot and the number of the try.
"""


def run_name(order_id: str) -> str:
    """Return the name of the run that an order belongs to."""
    return order_id.rpartition(".")[0] or order_id


def folder_of_run(folders: str, order_id: str) -> str:
    """Return where a run works in a folder of its own, below the machine's folder of all such."""
    return f"{folders}/{run_name(order_id)}"
