"""What an endpoint says of its models, and of itself.

Owns /v1/models and /health. Doesn't know what a model is made of.
"""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from jupiterd.daemon.serving.card.served_facts import TellsOfModels
from jupiterd.daemon.serving.served_names import NamesModels
from jupiterd.errors import ModelNotServedError, UsageError


class ModelHandlers:
    """Handles the requests about the models of one endpoint."""

    def __init__(self, names: NamesModels, began_s: int, cards: TellsOfModels | None) -> None:
        """Take what knows the names, since when the endpoint is there, and who tells of models.

        Args:
            names: of models.
            began_s: in s since 1970.
            cards: None: nothing is told of a model but its name.
        """
        self._names, self._began_s, self._cards = names, began_s, cards

    async def listed(self, _request: web.Request) -> web.Response:
        """List the models that can be asked."""
        rows = [self._row(name) for name in self._names.names()]
        return web.json_response({"object": "list", "data": rows})

    async def shown(self, request: web.Request) -> web.Response:
        """Show one model; raises ModelNotServedError."""
        name = request.match_info["name"]
        try:
            model = self._names.model(name)
        except UsageError as error:  # several ids begin so
            raise ModelNotServedError(error.message, error.hint) from error
        told = {} if self._cards is None else {"jupiter": await self._cards.of(model)}
        return web.json_response({**self._row(name), **told})

    async def health(self, _request: web.Request) -> web.Response:
        """Say that the endpoint is there; names of models are told with the token alone."""
        return web.json_response({"status": "ok"})

    def _row(self, name: str) -> Mapping[str, Any]:
        return {"id": name, "object": "model", "created": self._began_s, "owned_by": "jupiter"}
