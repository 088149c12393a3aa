"""What all releases of a bandit say, worked out once for each of them and remembered by digest."""

import asyncio
from collections import OrderedDict
from dataclasses import asdict
from typing import Any

from discreet.errors import ParameterError
from discreet.release import Release
from discreet.release._diagnosis import Diagnosis
from discreet.service._bandit import Bandit
from discreet.service._core import Core
from discreet.service.dashboard import _learning as learning
from discreet.service.dashboard._learning import Band, Coordinate, Layout, Point

Points = list[tuple[dict[str, Any], Point]]

_MOST_POINTS = 240  # on a chart
_FEWEST_POINTS = 8  # on one of a bandit with very many features
_MOST_NUMBERS = 4_000_000  # that are read for a chart, of all its releases
_REMEMBERED = 20_000  # points of all bandits together
_MOST_LINES = 8  # actions on a chart


class Histories:
    """What releases say, for all bandits.

    Args:
        core: where the releases are.
    """

    def __init__(self, core: Core) -> None:
        """Start with nothing remembered."""
        self._core = core
        self._points: OrderedDict[str, Point] = OrderedDict()
        self._layouts: dict[str, Layout] = {}
        self._known: dict[tuple[str, int], tuple[str, Points]] = {}
        self._diagnoses: dict[str, tuple[str, Diagnosis]] = {}
        self._coordinates: dict[str, tuple[str, list[Coordinate]]] = {}

    def layout(self, bandit: Bandit) -> Layout:
        """Which coordinates of its map tell something."""
        digest = bandit.features.digest
        if digest not in self._layouts:
            self._layouts[digest] = learning.layout(bandit.features)
        return self._layouts[digest]

    async def points(self, bandit: Bandit, most: int = _MOST_POINTS) -> Points:
        """Releases in order with what they say; of many every second, every fourth and so on.

        The last one is always there. Which are left out changes when their number doubles.

        Args:
            bandit: whose.
            most: how many, about.
        """
        digest, dim = bandit.digest, bandit.features.dim
        most = max(_FEWEST_POINTS, min(most, _MOST_NUMBERS // dim**2))
        known = self._known.get((bandit.name, most), ("", []))
        if known[0] == digest or bandit.state == "rewound":
            return known[1]
        found = await self._thinned(bandit, most)
        self._known[bandit.name, most] = (digest, found)
        return found

    async def coordinates(self, bandit: Bandit) -> list[Coordinate]:
        """What the last release says of each coordinate."""
        digest, known = bandit.digest, self._coordinates.get(bandit.name)
        if known is None or known[0] != digest:
            release, named = bandit.ranker.release, bandit.features
            found = await asyncio.to_thread(learning.coordinates, release, named)
            known = self._coordinates[bandit.name] = (digest, found)
        return known[1]

    async def diagnosis(self, bandit: Bandit) -> Diagnosis:
        """How much the last release says."""
        digest, known = bandit.digest, self._diagnoses.get(bandit.name)
        if known is None or known[0] != digest:
            known = (digest, await asyncio.to_thread(lambda: bandit.ranker.diagnosis))
            self._diagnoses[bandit.name] = known
        return known[1]

    async def _thinned(self, bandit: Bandit, most: int) -> Points:
        listed = [one for one in await self._core.releases(bandit.name) if one["number"] > 0]
        step = 1
        while len(listed) > step * most:
            step *= 2
        chosen = [one for one in listed[:-1] if one["number"] % step == 0] + listed[-1:]
        found = []
        for one in chosen:
            point = self._points.get(one["digest"])
            if point is None:
                point = await self._read(bandit, one["number"])
                if point is None:
                    continue
                self._points[one["digest"]] = point
                while len(self._points) > _REMEMBERED:
                    self._points.popitem(last=False)
            found.append((one, point))
        return found

    async def _read(self, bandit: Bandit, number: int) -> Point | None:
        document = await self._core.release_document(bandit.name, number)
        where = self.layout(bandit)

        def work() -> Point | None:
            try:
                return learning.read(Release.from_json(document), where)
            except ParameterError:  # altered, or noise of a law that has no bands
                return None

        return await asyncio.to_thread(work)


def chart(points: Points) -> dict[str, Any]:
    """Curves for the page's script: the mean reward, and shares of the most frequent actions.

    Args:
        points: what `Histories.points` gives.
    """
    found: dict[str, Any] = {
        "rows": [point.rows for _, point in points],
        "number": [point.number for _, point in points],
        "made": [facts["made"] for facts, _ in points],
        "mean": None,
        "actions": [],
    }
    if not points:
        return found
    if points[-1][1].mean is not None:
        found["mean"] = _columns([point.mean for _, point in points])
    for place in ordered(points[-1][1])[:_MOST_LINES]:
        name = points[-1][1].actions[place].name
        share = _columns([point.actions[place].share for _, point in points])
        found["actions"].append({"name": name, **share})
    return found


def ordered(point: Point) -> list[int]:
    """Places of actions, the most frequent first."""
    shares = [one.share.estimate or 0.0 for one in point.actions]
    return sorted(range(len(shares)), key=lambda place: (-shares[place], place))


def _columns(bands: list[Band | None]) -> dict[str, list[float | None]]:
    entries = [{} if band is None else asdict(band) for band in bands]
    return {
        name: [None if one.get(name) is None else round(one[name], 6) for one in entries]
        for name in ("estimate", "low", "high")
    }
