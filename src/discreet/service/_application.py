"""The service as one ASGI application: all routes, and what goes around every answer."""

import logging
import time
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from discreet.errors import DiscreetError
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


async def _on_error(request: Request, error: Exception) -> Response:
    del request
    return refusal(refused(error))


class _Outermost:
    """Counts, logs and secures every answer; nothing that goes wrong inside gets past it."""

    def __init__(self, app: Any, metrics: Metrics) -> None:  # noqa: ANN401  # an ASGI application
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_on(message: Any) -> None:  # noqa: ANN401
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_SECURE]
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        except Exception as error:  # noqa: BLE001
            if not status:  # Starlette raises once more what it has logged and answered
                await refusal(refused(error))(scope, receive, send_on)
        finally:
            route = getattr(scope.get("endpoint"), "__name__", "other")
            seconds = time.perf_counter() - began
            self._metrics.count(route, scope["method"], status, seconds)
            if route not in SILENT and _log.isEnabledFor(logging.DEBUG):
                facts = {"route": route, "status": status, "ms": round(seconds * 1000, 2)}
                _log.debug("request", extra=facts)


_SECURE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"server", b"discreet"),
]


def application(core: Core, configuration: Configuration) -> Any:  # noqa: ANN401
    """The service as an ASGI application.

    Args:
        core: what does the work.
        configuration: limits, and whether clients come by HTTPS.
    """
    routes = [*ROUTES, *personalizer.routes(core), *dashboard.routes(core, configuration)]
    handlers: dict[Any, Any] = dict.fromkeys(
        (ServiceError, DiscreetError, HTTPException, Exception), _on_error
    )
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    app.state.core = core
    app.state.configuration = configuration
    app.state.metrics = Metrics()
    app.state.buckets = Buckets(configuration.requests_per_second)
    app.state.strangers = Buckets(configuration.wrong_keys_per_second)
    return _Outermost(app, app.state.metrics)
