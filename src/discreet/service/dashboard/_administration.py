"""Signing in and out, and what administrators do: bandits, keys, erasure, the audit log."""

from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from discreet.service._bodies import ServiceError
from discreet.service._http import client_of, key_of
from discreet.service._keys import SCOPES
from discreet.service.dashboard import _forms as forms
from discreet.service.dashboard import _live as live
from discreet.service.dashboard._forms import DEFAULTS, FormError, first, form_of
from discreet.service.dashboard._site import (
    BEFORE,
    COOKIE,
    Site,
    Visit,
    bandit_path,
    new_token,
    require_own_form,
    see_other,
)

_WRONG = "This key is not valid, or may not read. Ask whoever runs the service for one."
_LONGEST_SUBJECT = 500


def sign_in_page(site: Site) -> Callable[[Request], Awaitable[Response]]:
    """The form to sign in with a key, and what happens when it is sent."""

    async def sign_in(request: Request) -> Response:
        session = site.sessions.find(request.cookies.get(COOKIE))
        if request.method == "POST":
            return await _signed_in(site, request)
        if session is not None and site.core.still_valid(session.key) is not None:
            return see_other("/")
        return _asking(site, request)

    return sign_in


def _asking(site: Site, request: Request, status: int = 200, error: str = "") -> Response:
    token = request.cookies.get(BEFORE) or new_token()
    response = site.html(
        "sign_in.html",
        status,
        visit=None,
        form_token=site.sessions.form_token(token),
        next=_inside(request.query_params.get("next", "")),
        error=error,
        notices=[("good", "You are signed out.")] if "out" in request.query_params else [],
    )
    site.set_cookie(response, BEFORE, token)
    return response


async def _signed_in(site: Site, request: Request) -> Response:
    try:
        form = await form_of(request)
        token = request.cookies.get(BEFORE)
        require_own_form(site, request, first(form, "form_token"), token)
    except ServiceError as error:
        return _asking(site, request, error.status, error.message)
    key = key_of(request, first(form, "key"))
    if key is None or not key.allows("read", key.bandit):
        if not request.app.state.strangers.take(client_of(request)):
            return _asking(site, request, 429, "Too many attempts; wait a little.")
        return _asking(site, request, 401, _WRONG)
    site.sessions.close(request.cookies.get(COOKIE))
    response = see_other(_inside(first(form, "next")))
    site.set_cookie(response, COOKIE, site.sessions.open(key.id))
    site.drop_cookie(response, BEFORE)
    return response


def _inside(path: str) -> str:
    """A page of the dashboard to go to; the overview if this is none."""
    path = unquote(path) if path.startswith("%2F") else path
    inside = path.startswith("/dashboard/") and path.isprintable() and "\\" not in path
    return path if inside and not path.startswith("/dashboard/data") else "/"


async def sign_out(visit: Visit) -> Response:
    """End the session."""
    await visit.form()
    visit.site.sessions.close(visit.request.cookies.get(COOKIE))
    response = see_other("/sign-in?out")
    visit.site.drop_cookie(response, COOKIE)
    return response


async def new_bandit(visit: Visit) -> Response:
    """The form to make a bandit."""
    return visit.html("new_bandit.html", given=DEFAULTS, errors={})


async def create_bandit(visit: Visit) -> Response:
    """Make it, or say what is wrong beside the field."""
    form = await visit.form()
    errors: dict[str, str]
    try:
        spec = forms.bandit_of(form)
        made = await visit.core.create_bandit(spec, who=visit.who)
    except FormError as error:
        errors = error.errors
    except ServiceError as error:
        if error.status not in {400, 409}:
            raise
        taken = error.code == "BanditExists"
        errors = {"name": error.message} if taken else forms.by_field(error.message)
    else:
        visit.notice(f"Bandit {made.name} is there. Ask it for a decision to see it learn.")
        return see_other(bandit_path(made.name))
    given = {name: form.get(name, [""])[0] for name in DEFAULTS}
    return visit.html("new_bandit.html", 400, given=given, errors=errors)


async def keys(visit: Visit) -> Response:
    """All keys, and the form to make one. A new key's text is shown on this page once."""
    new, visit.session.new_key = visit.session.new_key, None
    return await _keys(visit, new=new)


async def _keys(
    visit: Visit,
    status: int = 200,
    *,
    new: tuple[str, str] | None = None,
    errors: dict[str, str] | None = None,
    given: dict[str, list[str]] | None = None,
) -> Response:
    return visit.html(
        "keys.html",
        status,
        keys=await visit.core.keys(),
        bandits=sorted(bandit.name for bandit in visit.core.bandits()),
        scopes=SCOPES,
        new=new,
        errors=errors or {},
        given=given or {},
    )


async def create_key(visit: Visit) -> Response:
    """Make a key, or say what is wrong beside the field."""
    form = await visit.form()
    try:
        asked = forms.key_of(form)
        key, text = await visit.core.create_key(
            name=asked.name, scopes=asked.scopes, bandit=asked.bandit, who=visit.who
        )
    except FormError as error:
        return await _keys(visit, 400, errors=error.errors, given=form)
    visit.session.new_key = (key.name, text)
    return see_other("/dashboard/keys")


async def revoke_key(visit: Visit) -> Response:
    """End a key and the sessions that were opened with it."""
    await visit.form()
    identity = visit.request.path_params["key"]
    await visit.core.revoke_key(identity, who=visit.who)
    visit.site.sessions.end_of_key(identity)
    visit.notice("The key is revoked. Sessions that were opened with it have ended.")
    return see_other("/dashboard/keys")


async def audit_log(visit: Visit) -> Response:
    """The last administrative calls."""
    return visit.html("audit_log.html", entries=await visit.core.audit_log(limit=200))


async def erase(visit: Visit) -> Response:
    """Erase a person. Who it is, is not repeated anywhere."""
    form = await visit.form()
    subject = form.get("subject", [""])[0]
    path = bandit_path(live.bandit_of(visit).name, "events")
    if not 0 < len(subject) <= _LONGEST_SUBJECT:
        visit.notice("Give the subject as it was given with ranks, up to 500 characters.", "bad")
        return see_other(path)
    done = await visit.core.erase(live.bandit_of(visit).name, subject, who=visit.who)
    if done.open is None:
        visit.notice("The writer has not answered yet; it will erase this subject when it is back.")
    else:
        visit.notice(
            f"Erased: {done.open:,} open events and {done.in_batch:,} unreleased rows are zeros "
            f"now. {done.released:,} rows are in releases and cannot be taken back."
        )
    return see_other(path)
