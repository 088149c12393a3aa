"""What all pages share: templates, sessions, guards, and how errors look to people."""

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from discreet.errors import DiscreetError
from discreet.service._bodies import ServiceError
from discreet.service._configuration import Configuration
from discreet.service._core import Core
from discreet.service._http import refused
from discreet.service._keys import Key
from discreet.service.dashboard import _shown as shown
from discreet.service.dashboard._forms import first, form_of
from discreet.service.dashboard._history import Histories
from discreet.service.dashboard._sessions import LIFETIME, Session, Sessions
from discreet.version import __version__

T = TypeVar("T")

HERE = Path(__file__).parent
COOKIE = "discreet_session"
BEFORE = "discreet_form"  # the cookie of somebody who is not signed in yet
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SECURE = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_ILL = {
    "database": "The database does not answer. What you see may be old; no decision is made.",
    "writer": "The writer has not been seen for a while. Decisions go on with the last release; "
    "events and rewards are kept, and learned from when it is back.",
}
_TITLES = {400: "That did not work", 403: "Not with this key", 404: "Not here", 429: "Slow down"}


class Site:
    """The dashboard of one process.

    Args:
        core: what knows bandits and keys.
        configuration: how the service is set up.
    """

    def __init__(self, core: Core, configuration: Configuration) -> None:
        """Read the templates."""
        self.core = core
        self.secure = configuration.tls
        self.sessions = Sessions()
        self.histories = Histories(core)
        self.templates = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters.update(shown.FILTERS)
        self.templates.globals.update(
            interval=shown.interval,
            sparkline=shown.sparkline,
            version=__version__,
            static=f"/dashboard/static/{_static_digest()}",
        )

    def html(self, template: str, status: int = 200, **context: Any) -> Response:  # noqa: ANN401  # whatever the template shows
        """A page."""
        text = self.templates.get_template(template).render(**context)
        return Response(text, status, SECURE, "text/html")

    def set_cookie(self, response: Response, name: str, token: str) -> None:
        """Give the browser a token that scripts cannot read and other sites cannot use."""
        response.set_cookie(
            name,
            token,
            max_age=int(LIFETIME),
            path="/",
            httponly=True,
            samesite="strict",
            secure=self.secure,
        )

    def drop_cookie(self, response: Response, name: str) -> None:
        """Have the browser delete a cookie."""
        response.delete_cookie(name, path="/", httponly=True, samesite="strict", secure=self.secure)


class Visit:
    """One request of somebody who is signed in."""

    def __init__(self, site: Site, request: Request, session: Session, key: Key) -> None:
        """Use `page`."""
        self.site = site
        self.core = site.core
        self.request = request
        self.session = session
        self.key = key

    @property
    def who(self) -> str:
        """Who is asking, for the audit log."""
        return f"{self.key.name} ({self.key.id})"

    @property
    def administrator(self) -> bool:
        """Whether everything is allowed."""
        return self.key.allows("admin", None)

    @property
    def health(self) -> list[str]:
        """What is not well with the service, in sentences; nothing if all is."""
        found = self.core.health()
        return [sentence for part, sentence in _ILL.items() if found[part] != "ok"]

    @property
    def form_token(self) -> str:
        """What forms of this session send back."""
        return self.site.sessions.form_token(self.request.cookies[COOKIE])

    def html(self, template: str, status: int = 200, **context: Any) -> Response:  # noqa: ANN401  # whatever the template shows
        """A page with the frame around it. Notices are shown once."""
        notices, self.session.notices = self.session.notices, []
        return self.site.html(
            template,
            status,
            visit=self,
            form_token=self.form_token,
            notices=notices,
            health=self.health,
            path=self.request.url.path,
            **context,
        )

    def notice(self, text: str, kind: str = "good") -> None:
        """Have the next page say something."""
        self.session.notices.append((kind, text))

    async def form(self) -> dict[str, list[str]]:
        """The posted form, if it was made for this session; ServiceError 403 if not."""
        form = await form_of(self.request)
        token = self.request.cookies.get(COOKIE)
        require_own_form(self.site, self.request, first(form, "form_token"), token)
        return form


Handler = Callable[[Visit], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


def require_own_form(site: Site, request: Request, given: str, token: str | None) -> None:
    """ServiceError 403 unless a form comes from a page of this dashboard, made for this cookie."""
    elsewhere = request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}
    if elsewhere or not site.sessions.is_form_token(given, token):
        raise ServiceError(
            403, "Forbidden", "This form is too old, or came from elsewhere. Go back and try again."
        )


def page(site: Site, handler: Handler, *, scope: str = "read") -> Endpoint:
    """A page for people who are signed in with a key that may do this.

    Args:
        site: the dashboard.
        handler: makes the page.
        scope: what the key needs, for the bandit of the path if there is one; 'admin' without a
            bandit needs a key for all bandits.
    """

    async def handle(request: Request) -> Response:
        visit = _visit(site, request)
        if visit is None:
            return _to_sign_in(request)
        try:
            _require(visit, scope)
            return await handler(visit)
        except (ServiceError, DiscreetError) as error:
            return _refusal(visit, refused(error))

    handle.__name__ = f"dashboard_{getattr(handler, '__name__', 'page').strip('_')}"
    return handle


def data(site: Site, handler: Handler) -> Endpoint:
    """JSON for a page's script, for the same people as the page."""

    async def handle(request: Request) -> Response:
        visit = _visit(site, request)
        if visit is None:
            return as_json({"error": {"code": "Unauthorized", "message": "Sign in."}}, 401)
        try:
            _require(visit, "read")
            return await handler(visit)
        except (ServiceError, DiscreetError) as error:
            found = refused(error)
            body = {"error": {"code": found.code, "message": found.message}}
            return as_json(body, found.status)

    handle.__name__ = f"dashboard_data_{getattr(handler, '__name__', 'data').strip('_')}"
    return handle


def as_json(value: object, status: int = 200) -> Response:
    """A JSON answer for a page's script."""
    return Response(msgspec.json.encode(value), status, SECURE, "application/json")


def see_other(path: str) -> Response:
    """After a form: go there with GET."""
    return RedirectResponse(path, 303, SECURE)


def bandit_path(name: str, page_name: str = "") -> str:
    """The address of a bandit's page."""
    return f"/dashboard/bandits/{quote(name, safe='')}" + (f"/{page_name}" if page_name else "")


def new_token() -> str:
    """A token for somebody who is not signed in yet."""
    return secrets.token_urlsafe(24)


def _visit(site: Site, request: Request) -> Visit | None:
    session = site.sessions.find(request.cookies.get(COOKIE))
    if session is None:
        return None
    key = site.core.still_valid(session.key)
    if key is None or not key.allows("read", key.bandit):  # revoked
        site.sessions.end_of_key(session.key)
        return None
    return Visit(site, request, session, key)


def _require(visit: Visit, scope: str) -> None:
    name = visit.request.path_params.get("bandit")
    if name is None and scope == "read":
        return
    if name is not None and not visit.key.allows("read", name):
        raise ServiceError(404, "BanditNotFound", "There is no bandit of this name.")
    if not visit.key.allows(scope, name):
        raise ServiceError(403, "Forbidden", "Your key may look, and not change anything here.")


def _refusal(visit: Visit, error: ServiceError) -> Response:
    title = _TITLES.get(error.status, "Not now" if error.status >= 500 else "That did not work")
    return visit.html("error.html", error.status, title=title, message=error.message)


def _to_sign_in(request: Request) -> Response:
    if request.method != "GET" or request.url.path == "/":
        return see_other("/sign-in")
    return see_other(f"/sign-in?next={quote(request.url.path, safe='')}")


def _static_digest() -> str:
    """Part of the address of static files, so that browsers can keep them until they change."""
    found = hashlib.sha256()
    for file in sorted((HERE / "static").rglob("*")):
        if file.is_file():
            found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:12]


async def in_thread(work: Callable[[], T]) -> T:
    """Do arithmetic elsewhere, so that decisions do not wait for a page."""
    return await asyncio.to_thread(work)
