"""A client of `discreet serve` for Python: typed, with retries, made of the standard library alone.

Importing it is quick and needs no extra. See `Client`.
"""

from discreet.client._answers import (
    BanditInfo,
    Erased,
    KeyInfo,
    NewKey,
    RankedAction,
    Ranking,
    ReleaseName,
    Verdict,
)
from discreet.client._client import Client
from discreet.client._transport import Retries
from discreet.errors import ClientError

__all__ = [
    "BanditInfo",
    "Client",
    "ClientError",
    "Erased",
    "KeyInfo",
    "NewKey",
    "RankedAction",
    "Ranking",
    "ReleaseName",
    "Retries",
    "Verdict",
]
