"""The models that people name: presets in `config/models`.

Owns finding and reading them. Doesn't know what a preset says (`cycle.plan`).
"""

from jupiterd.errors import NotFoundError
from jupiterd.locations import config_folder


def model_text(name: str) -> str:
    """Return the text of a preset that can be read.

    Raises:
        NotFoundError: there is no such model.
        InvalidSettingError: it says something that it can't.
    """
    from jupiterd.cycle.plan import parse_model  # its models take 8 MB, idle or not

    folder = config_folder() / "models"
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    if name not in known:
        raise NotFoundError(f"there is no size {name}", f"sizes: {', '.join(known)}")
    text = (folder / f"{name}.yaml").read_text()
    parse_model(text)
    return text
