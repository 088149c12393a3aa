"""Stored learners with errors in them, and what reads them. Also a script: test_mutated_files.py.

A case is made from its number alone, so that whatever goes wrong can be made again:
`python mutation.py CASES FIRST` plays the cases FIRST, FIRST + 1, ... and prints what it found.
What is read is what `load` reads: files, or the items of a store without the files around them.

Errors that nothing was made to fit are found out: the learner that is loaded is the same to the
bit, or it is refused with a `StateFileError`. Where seals and chains were made to fit, another
learner may come out, if it makes sense, or any `DiscreetError`. There is no other exception, no
warning, no allocation beyond a few hundred megabytes, and no case that takes seconds.
"""

import base64
import contextlib
import copy
import functools
import hashlib
import itertools
import json
import random
import resource
import secrets
import signal
import sqlite3
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import discreet
from discreet import _canonical as canonical
from discreet.curator import store as stores
from discreet.curator._changes import (
    DECISION,
    HEAD,
    LEARNER,
    PERSON,
    ROW,
    SESSION,
    SUMS,
    Records,
)
from discreet.curator.store import Item, Opened
from discreet.curator.store.memory import MemoryStore
from discreet.errors import DiscreetError, StateFileError
from discreet.mechanism.noise.sources import SeededNoise
from discreet.mechanism.schedules import batches
from discreet.mechanism.strategies import SquareRoot
from helpers import EARLY, whole_state

PROBLEM = discreet.Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
TARGET = discreet.Privacy(epsilon=1.0, delta=1e-6)
TIGHT = discreet.VARIANTS["tight"]
LEARNERS: dict[str, tuple[Any, str]] = {
    "tight": (TIGHT.with_schedule(batches(3)), "exact"),
    "tight float": (TIGHT.with_schedule(batches(5)), "float"),
    "square-root": (TIGHT.with_schedule(batches(2)).with_strategy(SquareRoot()), "exact"),
    "gaussian": (discreet.VARIANTS["gaussian"], "exact"),
    "wishart": (discreet.VARIANTS["wishart"], "float"),
    "nonprivate": (discreet.VARIANTS["nonprivate"], "exact"),
    "windows": (EARLY, "exact"),
    "windows float": (EARLY, "float"),
}
PAGE = 4096  # bytes
SECONDS = 20  # a case takes milliseconds; this is to find one that does not end
MEMORY = 2**29  # bytes more than there were


class Specimen(NamedTuple):
    """A stored learner that was closed: its files, and what is in them.

    Attributes:
        database: its database.
        ledger: its ledger.
        items: what is in the database.
        state: a digest of that.
        early: its database, before some of its releases.
    """

    database: bytes
    ledger: bytes
    items: tuple[Item, ...]
    state: str
    early: bytes


class TooSlow(BaseException):
    """A case that does not end."""


def specimens() -> list[Specimen]:
    """The same learners every time: with rows, releases, people, and decisions that wait."""
    names = itertools.count(1)

    def name(size: int) -> str:
        return f"{next(names):0{2 * size}x}"

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(secrets, "token_hex", name),
        mock.patch.object(secrets, "token_bytes", bytes),
    ):
        return [_specimen(Path(folder) / one, one) for one in LEARNERS]


def _specimen(path: Path, name: str) -> Specimen:
    variant, noise = LEARNERS[name]
    learner = discreet.LinUCB(
        PROBLEM,
        horizon=64,
        privacy=None if name == "nonprivate" else TARGET,
        variant=variant,
        noise=noise,
        noise_source=SeededNoise(np.random.SeedSequence(5)),
        policy=discreet.UCB(),  # which leaves nothing to chance
        path=path,
    )
    waiting = []
    for turn in range(16):
        who = f"person {turn % 11}" if turn % 3 else None
        waiting.append(learner.choose([[0.5, -0.25], [0.125 * (turn % 3), 0.75]], subject=who))
        if turn % 4:
            learner.learn(waiting.pop(0), 0.25 * (turn % 3) - 0.25)
        if turn == 8:
            learner.save()
            early = path.read_bytes()
        if turn == 11:
            learner.forget(waiting.pop(0))
    state = digest(learner)
    learner._curator._storage.store.close()  # with rows that are not in the sums
    files = path.read_bytes(), path.with_name(f"{path.name}.ledger").read_bytes()
    with contextlib.closing(sqlite3.connect(path)) as database:
        items = tuple(database.execute("SELECT * FROM item WHERE kind >= 0 ORDER BY 1, 2"))
    return Specimen(*files, items, state, early)


def digest(learner: discreet.LinUCB) -> str:
    """Of everything that is held but the settings, and of all releases."""
    parts = {key: value for key, value in whole_state(learner).items() if key[0] != LEARNER}
    return hashlib.sha256(repr((sorted(parts.items()), learner.ledger.head)).encode()).hexdigest()


# What can go wrong with bytes.


def flip(rng: random.Random, data: bytes, _: bytes) -> bytes:
    altered = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        altered[rng.randrange(len(altered))] ^= 1 << rng.randrange(8)
    return bytes(altered)


def insert(rng: random.Random, data: bytes, _: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    more = rng.choice((rng.randbytes(rng.randrange(1, 9)), b"\n", b"\0" * 9, b"9" * 30, b'"', b"}"))
    return data[:at] + more + data[at:]


def delete(rng: random.Random, data: bytes, _: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice((1, 1, 2, 30, 300)) :]


def swap(rng: random.Random, data: bytes, _: bytes) -> bytes:
    altered = bytearray(data)
    one, other = rng.randrange(len(data)), rng.randrange(len(data))
    altered[one], altered[other] = altered[other], altered[one]
    return bytes(altered)


def truncate(rng: random.Random, data: bytes, _: bytes) -> bytes:
    return data[: rng.randrange(len(data))] + rng.choice((b"", b"", b"\n", b"\0" * 50, b"}"))


def duplicate(rng: random.Random, data: bytes, _: bytes) -> bytes:
    at = rng.randrange(len(data))
    end = at + rng.choice((1, 10, 100, 1000))
    return data[:end] + data[at:]


def splice(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]


BYTES: list[Callable[[random.Random, bytes, bytes], bytes]] = [
    flip,
    insert,
    delete,
    swap,
    truncate,
    duplicate,
    splice,
]

# What can go wrong with JSON. A raw token is text that stands in the file as it is.

_RAW = "raw token:"
_TOKENS = ["1e999", "-1e999", "NaN", "-Infinity", "1E+400", "9" * 500, "1." + "0" * 500, "01"]
_TOKENS += ["[" * 3000 + "]" * 3000, '{"a":' * 900 + "1" + "}" * 900, '{"a":1,"a":2}', '"\\ud800"']
_VALUES: list[Any] = [None, True, False, 0, 1, -1, 2, 3, 16, 17, 64, 2**31, 2**31 - 1, 2**62]
_VALUES += [2**63, 2**64, -(2**63), 10**9, 10**18, 10**30, 10**150, 10**300, -(10**300), 0.5, -0.0]
_VALUES += [1e-300, 1e-12, 1e300, -1e300, 5e-324, 1.7976931348623157e308, 2.0**53, 0.1, 1.0000001]
_VALUES += ["", "0", "nan", "1", "x" * 1000, "\ud83d\ude00", "AAAAAAAA", "error", "clip", "tree"]
_VALUES += [[], {}, [[]], [None], [0], [2, 5], [10**9, 10**9], [1] * 9, [[[[[1.0]]]]]]
_VALUES += [{"kind": "tree"}, {"shape": [0, 5]}, {"family": "gaussian"}, {"kind": "optimised"}]


def value(rng: random.Random, old: object) -> object:
    """Something else in the place of a value."""
    roll = rng.random()
    if roll < 0.06:
        return _RAW + rng.choice(_TOKENS)
    if roll < 0.5:
        return copy.deepcopy(rng.choice(_VALUES))
    if isinstance(old, str):
        return _text(rng, old)
    others: tuple[Any, ...] = (old, [old], {"a": old})
    if isinstance(old, bool) or old is None:
        others = (True, False, None, 1)
    elif isinstance(old, int):
        others = (old + 1, old - 1, -old, float(old), old * 2, old << 40, str(old))
    elif isinstance(old, float):
        others = (old * 2, -old, old * 1e30, old / 1e30, old + 1e-9, int(old), str(old))
    return rng.choice(others)


def _text(rng: random.Random, old: str) -> str:
    """Another text, sometimes other numbers in base64, as many as before."""
    with contextlib.suppress(ValueError):
        count = len(base64.b64decode(old, validate=True)) // 8
        strange = [np.nan, np.inf, 1e308, -1e308, 5e-324, 0.0, 1.0, 2.0**62, 2.0**63]
        numbers = np.array([rng.choice(strange) for _ in range(count)])
        whole = np.array([rng.randrange(-(2**63), 2**63) for _ in range(count)], dtype=np.int64)
        data = rng.choice((numbers.tobytes(), whole.tobytes(), rng.randbytes(8 * count)))
        return base64.b64encode(data).decode("ascii")
    return rng.choice((old + "0", old[:-1], old[::-1], old.upper(), "-" + old, old * 3))


def places(tree: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value inside a document."""
    pairs: Any = ()
    if isinstance(tree, dict):
        pairs = tree.items()
    elif isinstance(tree, list):
        pairs = enumerate(tree)
    for key, part in pairs:
        yield (*path, key)
        yield from places(part, (*path, key))


@functools.cache
def _ways(text: bytes) -> list[tuple[Any, ...]]:
    return list(places(json.loads(text)))


@functools.cache
def _parts(text: bytes) -> list[bytes]:
    document = json.loads(text)
    return [spelled(_at(document, way)) for way in _ways(text)]


def altered(rng: random.Random, text: bytes, other: bytes) -> Any:  # noqa: ANN401  # any JSON
    """A document with one to three changes; ``other`` is where foreign parts come from."""
    found = json.loads(text)
    if rng.random() < 0.1 and _resized(rng, found):
        return found
    ways = _ways(text)
    for more in reversed(range(rng.choice((1, 1, 1, 2, 3)))):
        if not ways:
            break
        *way, key = rng.choice(ways)
        parent = _at(found, way)
        roll = rng.random()
        if roll < 0.15:
            del parent[key]
        elif roll < 0.25 and isinstance(parent, dict):
            parent[f"{key}2"] = copy.deepcopy(parent[key])
        elif roll < 0.25:
            parent.append(copy.deepcopy(parent[key]))
        elif roll < 0.35:
            parent[key] = json.loads(rng.choice(_parts(other)))
        else:
            parent[key] = value(rng, parent[key])
        ways = list(places(found)) if more else []
    return found


def _resized(rng: random.Random, found: Any) -> bool:  # noqa: ANN401
    """Another dimension or another number of releases, wherever it is easy to say so."""
    try:
        setting, sums = found["learner"]["mechanism"]["setting"], found["sums"]
        size = rng.choice((1, 3, 64, 5000, 10**5, 10**6, 2**31 - 1, 10**12))
        found["decisions"], found["rows"] = [], []
        if rng.random() < 0.3:
            sums["number"] = sums["released"] = sums["rows"] = size
            found["head"]["rows"] = found["head"]["summed"] = found["head"]["rounds"] = size
        else:
            setting["problem"]["dim"] = size
            found["head"]["rows"] = found["head"]["summed"]
        if rng.random() < 0.5:
            setting["horizon"] = rng.choice((10**6, 10**12, 2**62, 10**30))
    except (KeyError, TypeError):
        return False
    return True


def _at(tree: Any, path: Any) -> Any:  # noqa: ANN401
    for key in path:
        tree = tree[key]
    return tree


def spelled(document: object) -> bytes:
    """JSON with raw tokens in it, in one line, keys sorted."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    while (at := text.find(f'"{_RAW}')) >= 0:
        token, end = json.JSONDecoder().raw_decode(text, at)
        text = text[:at] + token.removeprefix(_RAW) + text[end:]
    return text.encode("utf-8", "surrogatepass")


# Items, as one JSON document and back, with seals that fit.

_NUMBERED = (("rows", ROW), ("decisions", DECISION), ("sessions", SESSION), ("people", PERSON))


@functools.cache
def _opened(items: tuple[Item, ...]) -> bytes:
    """All items as one document: three of them are JSON, the others bytes in hexadecimal."""
    contents = {(kind, number): value[16:] for kind, number, value in items}
    found: dict[str, Any] = {
        name: json.loads(contents[kind, 0])
        for name, kind in (("learner", LEARNER), ("head", HEAD), ("sums", SUMS))
    }
    for name, kind in _NUMBERED:
        found[name] = [
            [number, part.hex()] for (one, number), part in contents.items() if one == kind
        ]
    return spelled(found)


def sealed_items(document: Any, *, fitting: bool) -> list[Item]:  # noqa: ANN401
    """The items of such a document, sealed; if ``fitting``, with a head that counts them."""
    learner = _at_or(document, ("learner", "learner"), "")
    try:
        codec = Records(learner)
    except (AttributeError, UnicodeEncodeError):
        codec = Records("")
    items, seals = [Records("").seal(LEARNER, 0, _spelled_part(document, "learner"))[0]], {}
    sums, seals["sums"] = codec.seal(SUMS, 0, _spelled_part(document, "sums"))
    items.append(sums)
    head = _at_or(document, ("head",), None)
    summed = _at_or(head, ("summed",), 0)
    seals["held"], held = 0, 0
    for name, kind in _NUMBERED:
        seals[name] = 0
        for number, contents in _numbered(_at_or(document, (name,), [])):
            item, seal = codec.seal(kind, number, contents)
            items.append(item)
            if kind == ROW and type(summed) is int and number <= summed:
                held += 1
                seals["held"] ^= seal
            else:
                seals[name] ^= seal
    if fitting and isinstance(head, dict):
        waiting, people = (sum(item[0] == kind for item in items) for kind in (DECISION, PERSON))
        head.update(waiting=waiting, decisions=seals["decisions"])
        head.update(since=seals["rows"], sums=seals["sums"], sessions=seals["sessions"])
        head.update(held=held, kept=seals["held"], people=people, counts=seals["people"])
    return [*items, codec.seal(HEAD, 0, _spelled_part(document, "head"))[0]]


def _spelled_part(document: Any, name: str) -> bytes:  # noqa: ANN401
    return spelled(_at_or(document, (name,), {}))


def _at_or(document: Any, way: tuple[str, ...], otherwise: Any) -> Any:  # noqa: ANN401
    for key in way:
        if not isinstance(document, dict) or key not in document:
            return otherwise
        document = document[key]
    return document


def _numbered(entries: Any) -> Iterator[tuple[int, bytes]]:  # noqa: ANN401
    """Whatever can be an item in a list that was altered."""
    for entry in entries if isinstance(entries, list) else []:
        with contextlib.suppress(TypeError, ValueError):
            number, contents = entry
            if type(number) is int and abs(number) < 2**63:
                yield number, bytes.fromhex(contents)


def sealed_ledger(facts: bytes, contents: list[dict[str, Any]]) -> bytes:
    """A ledger with this first line and these entries, chained."""
    try:
        chain = canonical.digest(canonical.parse(facts))
    except ValueError:
        chain = hashlib.sha256(facts).hexdigest()
    head = b'{"card":' if facts.startswith(b'{"card":') else b"{"
    lines = [facts]
    if head == b'{"card":':  # the digest comes between the card and the format
        at = facts.rfind(b',"format"')
        lines = [facts[:at] + b',"chain":"%s"' % chain.encode("ascii") + facts[at:]]
    for entry in contents:
        chain = canonical.link(chain, spelled(entry))
        lines.append(spelled({"chain": chain, **entry}))
    return b"\n".join(lines) + b"\n"


@functools.cache
def _lines(data: bytes) -> bytes:
    """All lines as one list."""
    return b"[%s]" % b",".join(data.split(b"\n")[:-1])


@functools.cache
def _unchained(data: bytes) -> bytes:
    """The lines of a ledger as one list, without their chain."""
    lines = json.loads(_lines(data))
    for line in lines:
        del line["chain"]
    return spelled(lines)


# One case: what was altered, how, and the stored learner with it.


class Case(NamedTuple):
    """A stored learner that was altered: as files, or as items without files around them."""

    part: str
    how: str
    specimen: Specimen
    read: Callable[[], str]

    @property
    def fitting(self) -> bool:
        """Whether seals and chains were made to fit."""
        return self.how.startswith("sealed")


def case(number: int, known: list[Specimen]) -> Case:
    """The case of this number."""
    rng = random.Random(number)
    one, foreign = rng.choice(known), rng.choice(known)
    part = rng.choices(("database", "items", "ledger"), (4, 5, 2))[0]
    how, altered_one = _ALTER[part](rng, one, foreign)
    reads = functools.partial(from_files if part == "database" else from_items, altered_one)
    return Case(part, how, one, reads)


def _database(rng: random.Random, one: Specimen, foreign: Specimen) -> tuple[str, Specimen]:
    how = rng.choice(("bytes", "pages"))
    rule = rng.choice(BYTES) if how == "bytes" else _pages
    return how, one._replace(database=rule(rng, one.database, foreign.database))


def _pages(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A page in the place of another: of the same file, of another one, of nothing, or shifted."""
    pages = [data[at : at + PAGE] for at in range(0, len(data), PAGE)]
    at, strange = rng.randrange(len(pages)), rng.randrange(len(other) // PAGE) * PAGE
    roll = rng.randrange(5)
    if roll == 0:
        pages[at] = pages[rng.randrange(len(pages))]
    elif roll == 1:
        pages[at] = other[strange : strange + PAGE]
    elif roll == 2:
        pages[at] = bytes(PAGE)
    elif roll == 3:
        pages.insert(at, pages[rng.randrange(len(pages))])
    else:
        rng.shuffle(pages)
    return b"".join(pages)


def _items(rng: random.Random, one: Specimen, foreign: Specimen) -> tuple[str, Specimen]:
    how = rng.choices(("bytes", "places", "sealed bytes", "sealed json"), (2, 2, 2, 6))[0]
    if how == "sealed json":
        found = altered(rng, _opened(one.items), _opened(foreign.items))
        return how, one._replace(items=tuple(sealed_items(found, fitting=rng.random() < 0.8)))
    items = list(one.items)
    at = rng.randrange(len(items))
    kind, number, value = items[at]
    if how == "places":
        items = _misplaced(rng, items, at, rng.choice(foreign.items))
    elif how == "bytes":
        items[at] = (kind, number, rng.choice(BYTES)(rng, value, rng.choice(foreign.items)[2]))
    else:
        found = json.loads(_opened(one.items))
        name = rng.choice(("rows", "decisions", "sessions"))
        entries = found[name]
        if entries:
            entry = rng.choice(entries)
            entry[1] = _other_bytes(rng, bytes.fromhex(entry[1])).hex()
        items = sealed_items(found, fitting=True)
    return how, one._replace(items=tuple(items))


def _misplaced(rng: random.Random, items: list[Item], at: int, strange: Item) -> list[Item]:
    """An item gone, twice, under another name, in another's place, or of another learner."""
    kind, number, value = items[at]
    other = rng.randrange(len(items))
    changed = rng.choice(
        (
            [],
            [items[at], (kind, number + 1, value)],
            [(kind, rng.choice((number + 1, number - 1, -1, 2**62)), value)],
            [(rng.choice((0, 1, 2, 3, 4, 5, 6, 99)), number, value)],
            [(kind, number, items[other][2])],
            [(kind, number, strange[2])],
            [items[at], strange],
            [(kind, number, rng.choice(("text", 5, None, 0.5, b"")))],
        )
    )
    return [*items[:at], *changed, *items[at + 1 :]]


def _other_bytes(rng: random.Random, data: bytes) -> bytes:
    """Other bytes, sometimes other numbers, as many as before."""
    if rng.random() < 0.4:
        return rng.choice(BYTES)(rng, data + b"\0", data + b"\1")
    strange = [np.nan, np.inf, 1e308, -1e308, 5e-324, 0.0, 1.0, -1.0, 2.0**62, 0.5]
    numbers = np.frombuffer(data[: len(data) // 8 * 8], dtype="<f8").copy()
    for _ in range(rng.choice((1, 1, 2, 9))):
        if numbers.size:
            numbers[rng.randrange(numbers.size)] = rng.choice(strange)
    whole = rng.randrange(-3, 40).to_bytes(8, "little", signed=True)
    found = numbers.tobytes()
    return whole + found[8:] if rng.random() < 0.2 else found


def _ledger_of(rng: random.Random, one: Specimen, foreign: Specimen) -> tuple[str, Specimen]:
    how = rng.choices(("bytes", "json", "sealed bytes", "sealed json"), (6, 2, 1, 3))[0]
    return how, one._replace(ledger=_ledger(rng, how, one.ledger, foreign.ledger))


def _ledger(rng: random.Random, how: str, data: bytes, other: bytes) -> bytes:
    if how == "bytes":
        return rng.choice(BYTES)(rng, data, other)
    if how == "json":
        lines = altered(rng, _lines(data), _lines(other))
        return b"".join(spelled(line) + b"\n" for line in lines)
    if how == "sealed json":
        facts, *entries = [*altered(rng, _unchained(data), _unchained(other)), {}]
        entries = [one for one in entries[:-1] if isinstance(one, dict)]
        return sealed_ledger(spelled(facts), entries)
    facts, *entries = json.loads(_unchained(data))
    return sealed_ledger(rng.choice(BYTES)(rng, spelled(facts), other), entries)


_ALTER = {"database": _database, "items": _items, "ledger": _ledger_of}


def from_files(one: Specimen) -> str:
    """A digest of what `load` makes of the files."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        path.write_bytes(one.database)
        path.with_name("state.ledger").write_bytes(one.ledger)
        learner = discreet.load(path)
        try:
            state = digest(learner)
            learner.choose([[0.1, 0.1]])
        finally:
            learner.close()
        with discreet.load(path) as again:
            assert again.rounds == learner.rounds, "a second load is another learner"
        return state


def from_items(one: Specimen) -> str:
    """A digest of what `load` makes of the items and the ledger."""
    whole = one.ledger[: canonical.whole(one.ledger)]
    opened = Opened(MemoryStore(), 16, list(one.items), whole)
    with mock.patch.object(stores, "open", return_value=opened):
        learner = discreet.load("state")
    return digest(learner)


class Findings:
    """What came of some cases."""

    def __init__(self) -> None:
        """Start with none."""
        self.kinds: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.wrong: list[str] = []

    def play(self, number: int, known: list[Specimen]) -> None:
        """Read one case; anything but a refusal or a success is wrong."""
        made = case(number, known)
        kind = f"{made.part}, {made.how}"
        self.kinds[kind] += 1
        refusals = DiscreetError if made.fitting else StateFileError
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            found = made.read()
            end = "read"
            if not made.fitting and found != made.specimen.state:
                self.wrong.append(f"case {number} ({kind}): another learner")
        except refusals as error:
            end = type(error).__name__
            if "\n" in str(error):
                self.wrong.append(f"case {number} ({kind}): a message of several lines")
        except (Exception, TooSlow) as error:  # noqa: BLE001  # that is what is looked for
            end = "wrong"
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__}: {error} at {Path(where.filename).name}:{where.lineno}"
            self.wrong.append(f"case {number} ({kind}): {what[:200]}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.ends[end] += 1


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Warnings are errors, no case runs for ever, and memory is bounded."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))

    def late(*_: object) -> None:
        raise TooSlow("took too long")

    old = signal.signal(signal.SIGALRM, late)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        signal.signal(signal.SIGALRM, old)
        resource.setrlimit(resource.RLIMIT_AS, before)


def play(cases: int, first: int) -> Findings:
    """Read so many cases."""
    known, findings = specimens(), Findings()
    for one in known:
        from_files(one)  # and compile all that is needed
        from_items(one)
    with guarded(), mock.patch("os.fsync"):
        for number in range(first, first + cases):
            findings.play(number, known)
    return findings


def main() -> None:
    found = play(int(sys.argv[1]), int(sys.argv[2]))
    wrong = found.wrong[:50]
    print(json.dumps({"kinds": found.kinds, "ends": found.ends, "wrong": wrong}))  # noqa: T201


if __name__ == "__main__":
    main()
