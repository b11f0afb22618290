"""The source of text that a command line names: a folder or file here, or a data set of the hub.

Owns that distinction, and names the machine that has the text. Doesn't read text:
`preflight.text_look` checks whether there is any.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jupiterd.cluster.values.run_names import is_round_name
from jupiterd.ctl.hub.names import is_hub_name
from jupiterd.ctl.invocation import Invocation
from jupiterd.errors import EmptySourceError, NotFoundError
from jupiterd.formats import plain
from jupiterd.ids import short
from jupiterd.path_text import path_of, path_text

GIVE_TEXT = "give it a folder or file with text, such as .txt, .md, .py or .jsonl"
GIVE_ANY = f"{GIVE_TEXT}, or ORG/NAME of the hub; jupiterctl data list shows what was made already"


def source_arguments(
    invocation: Invocation, text: str, options: Mapping[str, Any] | None = None, name: str = ""
) -> dict[str, Any]:
    """Return the command's fields about a source.

    Raises:
        NotFoundError: there is no such folder or file on this machine, nor data set on the hub.
        EmptySourceError: the folder is empty, or all of it was read and none of it is text.
        JupiterError: we have no access to the data set, or this is the only machine and can't
            reach the hub.
    """
    path = path_of(text)
    is_here = path.exists()
    if not is_here and is_round_name(text):
        raise NotFoundError(
            f"{text} is what a cycle's round was trained on",
            f"jupiterctl data export {text} --to FILE.jsonl, then give that file",
        )
    if not is_here and not is_hub_name(text):
        raise NotFoundError(f"there is no folder or file {path_text(path)}", GIVE_ANY)
    if path.is_dir() and not any(path.iterdir()):
        raise EmptySourceError(f"the folder {path_text(path)} is empty", GIVE_TEXT)
    kind = "folder" if is_here else "hugging_face"
    where = path_text(path.resolve()) if is_here else text
    source = {"kind": kind, "path": where, **(options or {})}
    if is_here:
        from jupiterd.ctl.preflight.text_look import check_that_there_is_text

        check_that_there_is_text(source)
    else:
        from jupiterd.ctl.hub.data_set import check_data_set

        check_data_set(text, lambda: _has_others(_status(invocation)))
    return {
        "source": source,
        "name": name or _name_of(Path(where).name if is_here else text),
        "node": str(_status(invocation)["node"]["id"]),
    }


def both_lines(invocation: Invocation, text: str) -> list[str]:
    """Return a line that says which is used if a path here and a data set have the same name."""
    if "/" in text or not path_of(text).exists():
        return []
    from jupiterd.ctl.calls import ask

    rows: Sequence[Mapping[str, Any]] = ask(invocation.state_dir, "data").get("data") or ()
    prepared = (row for row in rows if row.get("name") == text and row.get("shards"))
    newest = next(prepared, None)  # the document has the newest first
    if newest is None:
        return []
    said = f"Reads the text in ./{plain(text)} again; the data set that was made of that name"
    return [f"{said} is taken by --data {short(str(newest['id']))}"]


def _name_of(text: str) -> str:
    """Return a name for the data set that is also valid as a folder's name."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.")[:64] or "text"


def _status(invocation: Invocation) -> Mapping[str, Any]:
    from jupiterd.ctl.calls import ask

    return ask(invocation.state_dir, "status")


def _has_others(status: Mapping[str, Any]) -> bool:
    """Return whether another machine of the cluster could do the work."""
    return int((status.get("cluster") or {}).get("nodes_alive") or 0) > 1
