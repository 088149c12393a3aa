"""How the service is set up: by options, the environment (``DISCREET_*``), or a TOML file."""

import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from discreet.errors import ParameterError

ROLES = ("all", "ranker", "writer")
_SECRET_BYTES, _LONGEST_SECRET = 16, 64
_KINDS = {int: "a whole number", float: "a number", bool: "true or false"}


class Configuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set.

    Attributes:
        data: the folder of the SQLite database and the learners; with PostgreSQL, of what this
            process remembers itself.
        database: a PostgreSQL URL, to be used instead of SQLite.
        host: the address to listen on.
        port: the port to listen on.
        role: 'all', or 'ranker' or 'writer' alone.
        witness: the folder that remembers what was shown; beside ``data`` if left out.
        new_witness: whether the data is trusted to be the newest where the witness knows nothing
            of it. For one start.
        demo: whether to play visitors against a bandit `news`.
        tls_certificate: a PEM file, to serve HTTPS.
        tls_key: its key.
        proxy: whether a proxy in front says who the client is and that it came by HTTPS.
        largest_body: bytes that a request may have.
        body_seconds: how long a request may take to arrive.
        requests_per_second: for each key; 0 for no limit.
        wrong_keys_per_second: requests without a valid key, for each address; 0 for no limit.
        most_connections: how many there may be at a time.
        without_database: what rank answers while the database is gone: 'refuse', or 'unlearned'
            for a decision of which nobody knows whether it will be learned from.
        log_level: 'debug' logs every request, without its body.
    """

    data: str | None = None
    database: str | None = None
    host: str = "127.0.0.1"
    port: int = 8080
    role: str = "all"
    witness: str | None = None
    new_witness: bool = False
    demo: bool = False
    tls_certificate: str | None = None
    tls_key: str | None = None
    proxy: bool = False
    largest_body: int = 1 << 20
    body_seconds: float = 30.0
    requests_per_second: float = 0.0
    wrong_keys_per_second: float = 20.0
    most_connections: int = 20_000
    without_database: str = "refuse"
    log_level: str = "info"

    @property
    def folder(self) -> Path | None:
        """The data folder, with the home directory filled in and without ``..``."""
        return None if self.data is None else _plain(self.data)

    @property
    def tls(self) -> bool:
        """Whether clients come by HTTPS: to this process, or to a proxy in front of it."""
        return self.tls_certificate is not None or self.proxy

    @property
    def witness_folder(self) -> Path | None:
        """Where what was shown is remembered."""
        if self.witness is not None:
            return _plain(self.witness)
        folder = self.folder
        if folder is None:
            return None
        return folder / "witness" if self.database else folder.with_name(f"{folder.name}.witness")


def _plain(text: str) -> Path:
    """An absolute path that says itself where it leads: the witness is beside its last name."""
    return Path(os.path.normpath(Path(text).expanduser().absolute()))


def configuration(
    options: Mapping[str, Any],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Configuration:
    """The configuration: options count before the environment, and that before the file.

    Args:
        options: what was given on the command line; None where nothing was.
        file: a TOML file with the same names.
        environment: variables such as DISCREET_PORT; an empty one counts as none.

    Raises:
        ParameterError: something is unknown or cannot be; the message names it.
    """
    found: dict[str, Any] = {}
    if file is not None:
        try:
            found.update(tomllib.loads(file.read_text("utf-8")))
        except OSError as error:
            raise ParameterError(
                "config", f"{file} cannot be read ({error.strerror}); give the path of a TOML file"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            raise ParameterError("config", f"{file} is not TOML") from None
        known = Configuration.__struct_fields__
        for name in found:
            if name not in known:
                raise ParameterError(
                    "config", f"{file} has {name!r}, which is none of {', '.join(known)}"
                )
    for name in Configuration.__struct_fields__:
        if (text := environment.get(f"DISCREET_{name.upper()}", "")).strip():
            found[name] = text
    found.update({name: value for name, value in options.items() if value is not None})
    for field in msgspec.structs.fields(Configuration):
        if field.name in found:
            found[field.name] = _of_its_kind(field.name, found[field.name], field.type)
    made = Configuration(**found)
    _require(made)
    return made


def _of_its_kind(name: str, value: object, kind: Any) -> object:  # noqa: ANN401  # a type, or two
    """A setting as what it must be; in the environment everything is text."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        if kind in _KINDS:
            raise ParameterError(name, f"is {value!r}; give {_KINDS[kind]}") from None
        # What should be text may be a database's URL, with a password in it.
        raise ParameterError(name, f"is of type {type(value).__name__}; give text") from None


def _require(made: Configuration) -> None:
    choices = {
        "role": ROLES,
        "without_database": ("refuse", "unlearned"),
        "log_level": ("debug", "info", "warning", "error"),
    }
    for name, allowed in choices.items():
        if getattr(made, name) not in allowed:
            raise ParameterError(name, f"must be one of {', '.join(allowed)}")
    for name in ("largest_body", "most_connections"):
        if getattr(made, name) < 1:
            raise ParameterError(name, "must be at least 1")
    for name in ("requests_per_second", "wrong_keys_per_second"):
        if not 0.0 <= getattr(made, name) < math.inf:
            raise ParameterError(name, "must be a number from 0, which is no limit")
    if not 0.0 < made.body_seconds < math.inf:
        raise ParameterError("body_seconds", "must be a number above 0")
    _require_places(made)


def _require_places(made: Configuration) -> None:
    if made.data is None and made.database is None:
        raise ParameterError("data", "is missing; say where the data is kept: --data DIR")
    for name in ("data", "witness"):
        _require_folder(name, getattr(made, name))
    if not made.host.strip():
        raise ParameterError(
            "host", "is empty; give 127.0.0.1 for this machine alone, 0.0.0.0 for every interface"
        )
    if made.new_witness and made.witness_folder is None:
        raise ParameterError("new_witness", "needs a witness; give --witness or --data as well")
    if made.database is not None and not made.database.startswith(("postgresql://", "postgres://")):
        raise ParameterError("database", "is no postgresql:// URL; leave it out for SQLite")
    if made.database is not None and "#" in made.database:
        raise ParameterError("database", "must not have a #; bandits are named by their requests")
    if not 0 <= made.port <= 65535:
        raise ParameterError("port", f"is {made.port}; give one from 0 to 65535")
    if (made.tls_certificate is None) != (made.tls_key is None):
        raise ParameterError("tls_key", "and tls_certificate go together; give both")
    if made.demo and made.role == "writer":
        raise ParameterError("demo", "has visitors, who need a ranker; leave out --role writer")


def _require_folder(name: str, place: str | None) -> None:
    if place is not None and (not place.strip() or not _plain(place).name):
        raise ParameterError(name, f"is {place!r}; give a folder with a name of its own")


def secret_of(environment: Mapping[str, str] = os.environ) -> bytes | None:
    """The key for hashes of subjects, if it is kept outside of the database."""
    text = environment.get("DISCREET_SECRET")
    if text is None:
        return None
    size = len(text.encode())
    if not _SECRET_BYTES <= size <= _LONGEST_SECRET:
        raise ParameterError("DISCREET_SECRET", f"has {size} bytes; give from 16 to 64, at random")
    return text.encode()


def administrator_of(environment: Mapping[str, str] = os.environ) -> str | None:
    """The administrator's key, if it was given. An empty one counts as none.

    Raises:
        ParameterError: it could never be sent: it has white space at its ends.
    """
    text = environment.get("DISCREET_ADMIN_KEY") or None
    if text is not None and (text != text.strip() or not text.isprintable() or not text.isascii()):
        raise ParameterError(
            "DISCREET_ADMIN_KEY",
            "has white space at its ends, or characters that a header cannot carry; leave them out",
        )
    return text
