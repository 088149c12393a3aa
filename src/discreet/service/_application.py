"""The service as one ASGI application: all routes, and what goes around every answer."""

import logging
import time

from starlette.datastructures import State
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Router
from starlette.types import Message, Receive, Scope, Send

from discreet.service import _personalizer as personalizer
from discreet.service import dashboard
from discreet.service._api import ROUTES
from discreet.service._bodies import ServiceError
from discreet.service._configuration import Configuration
from discreet.service._core import Core
from discreet.service._http import refusal, refused
from discreet.service._limits import Buckets
from discreet.service._metrics import SILENT, Metrics

_log = logging.getLogger("discreet.http")


class Application:
    """Routes, and what goes around them: it counts, logs and secures every answer.

    Nothing that goes wrong inside gets past it. Starlette's own application would do that again,
    with two layers more around every request.

    Args:
        routes: where requests go.
        state: what handlers find in ``request.app.state``.
    """

    def __init__(self, routes: list[BaseRoute], state: State) -> None:
        self._router = Router(routes, redirect_slashes=False)
        self.state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope["app"] = self
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_SECURE]
            await send(message)

        try:
            await self._router(scope, receive, send_on)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is answered
            shown = refused(error)  # which logs what nobody thought of
            if not status:
                await self._refusal(shown, scope)(scope, receive, send_on)
        finally:
            route = getattr(scope.get("endpoint"), "__name__", "other")
            seconds = time.perf_counter() - began
            self.state.metrics.count(route, scope["method"], status, seconds)
            if route not in SILENT and _log.isEnabledFor(logging.DEBUG):
                facts = {"route": route, "status": status, "ms": round(seconds * 1000, 2)}
                _log.debug("request", extra=facts)

    def _refusal(self, error: ServiceError, scope: Scope) -> Response:
        """An error in the words of the interface that was asked."""
        said = personalizer.refusal_at(scope["path"]) or refusal
        found = said(error)
        if error.status == 405:
            found.headers["Allow"] = ", ".join(sorted(self._methods(scope)))
        return found

    def _methods(self, scope: Scope) -> set[str]:
        """What may be done with a path: there may be a route for each method."""
        fitting = [one for one in self._router.routes if one.matches(scope)[0] is not Match.NONE]
        return {method for one in fitting for method in getattr(one, "methods", None) or ()}


_SECURE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"server", b"discreet"),
]


def application(core: Core, configuration: Configuration) -> Application:
    """The service as an ASGI application.

    Args:
        core: what does the work.
        configuration: limits, and whether clients come by HTTPS.
    """
    state = State()
    state.core = core
    state.configuration = configuration
    state.metrics = Metrics()
    state.buckets = Buckets(configuration.requests_per_second)
    state.strangers = Buckets(configuration.wrong_keys_per_second)
    routes = [*ROUTES, *personalizer.routes(core), *dashboard.routes(core, configuration)]
    return Application(routes, state)
