"""Keyed hashes: under which people and requests are known, so that neither is stored."""

import hashlib
import secrets

import msgspec

from discreet.errors import ParameterError
from discreet.service._bodies import RankRequest, ServiceError
from discreet.service._database import Connection

_MARK = b"the key of this service's hashes"


class Hashes:
    """Hashes under one key."""

    def __init__(self, key: bytes) -> None:
        """Take a key of at most 64 bytes."""
        self._key = key

    def subject(self, bandit: str, subject: str) -> bytes:
        """The keyed hash under which a person is known to one bandit."""
        text = bandit.encode() + b"\0" + subject.encode("utf-8", "surrogatepass")
        return self._hash(text, 32, b"subject")

    def request(self, request: RankRequest, caller: str) -> bytes:
        """The keyed hash of what was asked, to know a repeated request of the same caller.

        Args:
            request: what was asked.
            caller: the id of the key that asked. Another caller must not find out by guessing what
                was asked, and what was answered.
        """
        try:
            asked = msgspec.json.encode(request, order="deterministic")
        except RecursionError:
            raise ServiceError(400, "BadRequest", "context: is nested too deeply.") from None
        return self._hash(caller.encode() + b"\0" + asked, 16, b"request")

    def fingerprint(self) -> bytes:
        """What may be stored of the key."""
        return self._hash(_MARK, 16, b"fingerprint")

    def _hash(self, text: bytes, size: int, person: bytes) -> bytes:
        return hashlib.blake2b(text, key=self._key, digest_size=size, person=person).digest()


def hashes(connection: Connection, given: bytes | None) -> Hashes:
    """Hashes under the key that was given, or one that is made once and kept in the tables.

    All processes must use one key, and always the same: a person with two hashes would count twice,
    and the guarantee would not cover them. So its fingerprint is kept, and another key is refused.

    Args:
        connection: in a transaction.
        given: a key from outside of the tables.

    Raises:
        ParameterError: the tables were used with another key.
    """
    if given is None:
        known = _setting(connection, "secret_fingerprint", None)
        if known is not None and _setting(connection, "secret", None) is None:
            raise ParameterError(
                "DISCREET_SECRET", "is missing; this data was made with one, give the same"
            )
        given = _setting(connection, "secret", secrets.token_bytes(32)) or b""
    found = Hashes(given)
    if _setting(connection, "secret_fingerprint", found.fingerprint()) != found.fingerprint():
        raise ParameterError(
            "DISCREET_SECRET",
            "is another one than this data was made with; people would count twice. Give the first "
            "one, or leave it out if there was none",
        )
    return found


def _setting(connection: Connection, name: str, otherwise: bytes | None) -> bytes | None:
    """A setting as it is stored; it is stored now if it was not, unless there is nothing to."""
    if otherwise is not None:
        connection.execute(
            "INSERT INTO service_setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
            (name, otherwise),
        )
    found = connection.execute("SELECT value FROM service_setting WHERE name = ?", (name,))
    return bytes(found[0][0]) if found else None
