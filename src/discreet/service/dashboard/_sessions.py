"""Who is signed in. Sessions are in this process's memory, under hashes of their tokens.

A session is tied to an API key by its id, and is looked up with it at every request: whoever
revokes the key ends its sessions. Signed cookies without a memory were the alternative. They could
not be ended by signing out, their signing key would be one more secret in every backup, and what
is shown once (a new key's text) would have nowhere to wait. The price: a restart signs everybody
out, and a proxy in front of several rankers has to send a browser to the same one each time.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

LIFETIME = 12 * 3600.0  # seconds
_MOST = 10_000  # sessions at a time; the oldest ends if there are more


@dataclass
class Session:
    """One browser that is signed in.

    Attributes:
        key: the id of the API key it was opened with.
        ends: when it ends, by the clock of `Sessions`.
        notices: what the next page is to say, once.
        new_key: the text of a key that was just made, for the next page and no other.
    """

    key: str
    ends: float
    notices: list[tuple[str, str]] = field(default_factory=list)
    new_key: tuple[str, str] | None = field(default=None, repr=False)


class Sessions:
    """All sessions of a process.

    Args:
        clock: any clock that goes forward, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with none, and with a key for form tokens that only this process has."""
        self._clock = clock
        self._open: dict[bytes, Session] = {}
        self._secret = secrets.token_bytes(32)

    def open(self, key: str) -> str:
        """Begin a session.

        Args:
            key: the id of the API key it is tied to.

        Returns:
            Its token, for the cookie.
        """
        now = self._clock()
        self._open = {name: one for name, one in self._open.items() if one.ends > now}
        while len(self._open) >= _MOST:
            del self._open[next(iter(self._open))]
        token = secrets.token_urlsafe(32)
        self._open[_hash(token)] = Session(key, now + LIFETIME)
        return token

    def find(self, token: str | None) -> Session | None:
        """The session of a token, if it has not ended."""
        if not token:
            return None
        found = self._open.get(_hash(token))
        return found if found is not None and found.ends > self._clock() else None

    def close(self, token: str | None) -> None:
        """End a session, if there is one."""
        self._open.pop(_hash(token or ""), None)

    def end_of_key(self, key: str) -> None:
        """End all sessions of an API key."""
        self._open = {name: one for name, one in self._open.items() if one.key != key}

    def form_token(self, token: str) -> str:
        """What a form has to send back: it goes with this cookie, and no other site knows it."""
        return hmac.new(self._secret, token.encode("utf-8", "replace"), "sha256").hexdigest()

    def is_form_token(self, given: str, token: str | None) -> bool:
        """Whether a form was made for this cookie."""
        return bool(token) and hmac.compare_digest(
            given.encode("utf-8", "replace"), self.form_token(str(token)).encode()
        )


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
