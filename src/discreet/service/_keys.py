"""API keys: hashed, scoped, revocable. What is stored cannot be used as a key."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable

from msgspec import Struct

SCOPES = ("rank", "reward", "read", "admin")
_ID = re.compile("[0-9a-f]{12}")
_TEXT = re.compile(r"dk_([0-9a-f]{12})_([A-Za-z0-9_-]{20,100})\Z")
_NOBODY = hashlib.sha256(b"no key has this digest").digest()


class Key(Struct, frozen=True, kw_only=True):
    """What is known of a key: who it is for, what it may do, and the digest of its secret.

    Attributes:
        id: part of its text; not secret.
        name: for people.
        scopes: what it may do.
        bandit: the only bandit that it is for; None for all.
        digest: SHA-256 of its whole text.
        created: when, in seconds since 1970.
    """

    id: str
    name: str
    scopes: tuple[str, ...]
    bandit: str | None
    digest: bytes
    created: float

    def allows(self, scope: str, bandit: str | None) -> bool:
        """Whether it may do something with a bandit, or with all of them (None)."""
        return ("admin" in self.scopes or scope in self.scopes) and (
            self.bandit is None or self.bandit == bandit
        )

    def __repr__(self) -> str:
        return f"Key(id={self.id!r}, name={self.name!r}, scopes={self.scopes!r})"


def made(name: str, scopes: Iterable[str], bandit: str | None, now: float) -> tuple[Key, str]:
    """A new key, and its text, which is not stored anywhere.

    Args:
        name: for people.
        scopes: what it may do.
        bandit: the only bandit that it is for.
        now: the time, in seconds since 1970.

    Returns:
        What is stored, and what is shown once.
    """
    identity = secrets.token_hex(6)
    text = f"dk_{identity}_{secrets.token_urlsafe(32)}"
    known = tuple(scope for scope in SCOPES if scope in set(scopes))
    key = Key(
        id=identity, name=name, scopes=known, bandit=bandit, digest=digest_of(text), created=now
    )
    return key, text


def administrator(text: str) -> Key:
    """The key that was given in the environment, whatever its text is."""
    return Key(
        id="environment",
        name="administrator",
        scopes=("admin",),
        bandit=None,
        digest=digest_of(text),
        created=0.0,
    )


def is_id(text: str) -> bool:
    """Whether a key could have this id."""
    return _ID.fullmatch(text) is not None


def digest_of(text: str) -> bytes:
    """What is stored of a key's text. Its secret has 256 bits, so a plain hash hides it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class Keyring:
    """All keys that are valid now."""

    def __init__(self, administrator: Key | None) -> None:
        """Start with the administrator's, if one was given."""
        self._administrator = administrator
        self._stored: dict[str, Key] = {}
        self._passing: dict[str, Key] = {}

    def replace(self, keys: Iterable[Key]) -> None:
        """Take in what the database has now."""
        self._stored = {key.id: key for key in keys}

    def lend(self, key: Key) -> None:
        """Take in a key that is valid as long as this process lives."""
        self._passing[key.id] = key

    def find(self, text: str, *, generated: bool = False) -> Key | None:
        """Whose key this is. It takes as long for a wrong secret as for a right one.

        Args:
            text: of the key.
            generated: whether only keys with a secret of ours count, which nobody can guess; the
                administrator's may be anything.
        """
        if not text:
            return None
        found = _TEXT.match(text)
        key = self._known(found[1]) if found else None
        given = digest_of(text)
        matches = hmac.compare_digest(given, _NOBODY if key is None else key.digest)
        root = None if generated else self._administrator
        reigns = hmac.compare_digest(given, _NOBODY if root is None else root.digest)
        return key if matches else root if reigns else None

    def still(self, identity: str) -> Key | None:
        """The key with this id, if it is still valid."""
        root = self._administrator
        return root if root is not None and identity == root.id else self._known(identity)

    def _known(self, identity: str) -> Key | None:
        return self._stored.get(identity) or self._passing.get(identity)
