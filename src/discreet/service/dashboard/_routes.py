"""Which address is which page."""

import mimetypes
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from discreet.service._bodies import ServiceError
from discreet.service._configuration import Configuration
from discreet.service._core import Core
from discreet.service.dashboard import _administration as administration
from discreet.service.dashboard import _live as live
from discreet.service.dashboard import _pages as pages
from discreet.service.dashboard._site import HERE, SECURE, Handler, Site, Visit, data, page

_BANDIT = "/dashboard/bandits/{bandit}"
_DATA = "/dashboard/data/bandits/{bandit}"
_KEPT = "public, max-age=31536000, immutable"  # the address has a digest of all files


def routes(core: Core, configuration: Configuration) -> list[BaseRoute]:
    """All routes of the dashboard.

    Args:
        core: what knows bandits, releases and keys.
        configuration: how the service is set up.
    """
    site = Site(core, configuration)
    return [
        Route("/sign-in", administration.sign_in_page(site), methods=["GET", "POST"]),
        *_pages(site),
        *_administration(site),
        *_data(site),
        Route("/dashboard/static/{digest}/{name:path}", _static()),
    ]


def _pages(site: Site) -> list[BaseRoute]:
    shown: dict[str, Handler] = {
        "/": pages.overview,
        _BANDIT: pages.learned,
        f"{_BANDIT}/releases": pages.releases,
        f"{_BANDIT}/releases/{{number}}": pages.release,
        f"{_BANDIT}/privacy": pages.privacy,
        f"{_BANDIT}/features": pages.features,
        f"{_BANDIT}/events": pages.events,
        f"{_BANDIT}/ledger.jsonl": pages.ledger_lines,
    }
    new = Route("/dashboard/new-bandit", page(site, administration.new_bandit, scope="admin"))
    return [new, *(Route(path, page(site, handler)) for path, handler in shown.items())]


def _administration(site: Site) -> list[BaseRoute]:
    def form(path: str, handler: Handler, scope: str = "admin") -> Route:
        return Route(path, page(site, handler, scope=scope), methods=["POST"])

    return [
        form("/sign-out", administration.sign_out, "read"),
        form("/dashboard/bandits", administration.create_bandit),
        form(f"{_BANDIT}/erase", administration.erase),
        form("/dashboard/keys", administration.create_key),
        form("/dashboard/keys/{key}/revoke", administration.revoke_key),
        Route("/dashboard/keys", page(site, administration.keys, scope="admin")),
        Route("/dashboard/audit-log", page(site, administration.audit_log, scope="admin")),
    ]


def _data(site: Site) -> list[BaseRoute]:
    def moving(one: live.Live) -> Handler:
        async def handler(visit: Visit) -> Response:
            return await live.send(visit, one)

        return handler

    return [
        Route("/dashboard/data/overview", data(site, moving(live.OVERVIEW))),
        Route(f"{_DATA}/releases/{{number}}", data(site, pages.release_json)),
        *(Route(f"{_DATA}/{name}", data(site, moving(one))) for name, one in live.PAGES.items()),
    ]


def _static() -> Callable[[Request], Awaitable[Response]]:
    """Styles, scripts and drawings: a few small files, held in memory."""
    folder = HERE / "static"
    held = {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }

    async def dashboard_static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in held:
            raise ServiceError(404, "NotFound", "There is no such file.")
        kind = mimetypes.guess_type(name)[0] or "text/plain"
        return Response(held[name], 200, {**SECURE, "Cache-Control": _KEPT}, kind)

    return dashboard_static
