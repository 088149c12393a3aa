"""The data sets, as what a bandit sees of them. All scales are constants, stated here.

The RAND health insurance experiment comes with statsmodels and the breast cancer records
and handwritten digits with scikit-learn; all are read from the installed package.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_PLAN_SCALE = 4.62  # no plan's log(coinsurance + 1) is above it
_DISEASES = 60.0  # an index of chronic diseases; above this it counts as this
_VISITS = 6.0  # more visits to a doctor in a year count as this many
_STANDARD = 10.0  # standardised records are divided by this, and cut to norm 1
_MOST_INK = 16.0  # the darkest shade of a pixel


@dataclass(frozen=True)
class Logged:
    """Choices that were made by lot, with their rewards.

    Attributes:
        people: features of the person in each row, shape (n, p).
        persons: which person a row is of, shape (n,); a person may have several rows.
        chosen: the action that was drawn, shape (n,).
        rewards: within [-1, 1], shape (n,).
        offers: features of each action, shape (K, q).
    """

    people: F64
    persons: I64
    chosen: I64
    rewards: F64
    offers: F64

    @property
    def shares(self) -> F64:
        """How often each action was drawn: the propensities."""
        return np.bincount(self.chosen, minlength=len(self.offers)) / len(self.chosen)

    def split(self, seed: int, rows: int) -> tuple[I64, I64]:
        """A number of rows to learn from, and all rows of people who have none among them.

        Args:
            seed: of the order in which people come.
            rows: how many to learn from.
        """
        order = np.random.default_rng(seed).permutation(self.persons.max() + 1)
        place = np.argsort(order)[self.persons]  # when each row's person comes
        queue = np.argsort(place, kind="stable")
        learned = queue[:rows]
        return learned, queue[place[queue] > place[learned[-1]]]

    def subset(self, rows: I64) -> Self:
        """Some of the rows."""
        parts = (self.people, self.persons, self.chosen, self.rewards)
        return type(self)(*(part[rows] for part in parts), self.offers)


@dataclass(frozen=True)
class Model:
    """How a person and an action become a vector of norm at most 1.

    Attributes:
        name: for tables.
        disjoint: whether each action has a parameter of its own; otherwise there is one, for the
            person's features, the action's, and products of both.
        blocks: whether the learner is told so.
        centred: whether features of actions, within [0, 1], are moved to [-1, 1].
    """

    name: str
    disjoint: bool
    blocks: bool = False
    centred: bool = False

    def sets(self, data: Logged) -> F64:
        """The decision set of each row, shape (n, K, d)."""
        n, p = data.people.shape
        actions = len(data.offers)
        if self.disjoint:
            vectors = np.zeros((n, actions, actions * p))
            for k in range(actions):
                vectors[:, k, k * p : (k + 1) * p] = data.people
            square = _square(data.people)
        else:
            own, q = data.people, data.offers
            if self.centred:
                q = 2 * q - 1
            products = q[None, :, :1] * own[:, None, 1:]  # the first feature is constant
            both = np.broadcast_to((q[:, 0] * q[:, 1])[:, None], (n, actions, 1))
            repeated = np.broadcast_to(own[:, None], (n, actions, p))
            offered = np.broadcast_to(q, (n, actions, q.shape[1]))
            vectors = np.concatenate([repeated, offered, both, products], axis=2)
            square = 2 * _square(data.people) - 1 + q.shape[1] + 1
        return np.asarray(vectors / np.sqrt(square))

    def sizes(self, data: Logged) -> tuple[int, ...]:
        """The sizes of blocks that the learner is told of."""
        p, actions = data.people.shape[1], len(data.offers)
        if self.blocks:
            return (p,) * actions
        return (p * actions if self.disjoint else 2 * p - 1 + data.offers.shape[1] + 1,)


SHARED = Model("shared", disjoint=False)
CENTRED = Model("shared, centred", disjoint=False, centred=True)
BLOCKS = Model("one per plan, blocks", disjoint=True, blocks=True)
NO_BLOCKS = Model("one per plan", disjoint=True)
MODELS = (SHARED, CENTRED, BLOCKS, NO_BLOCKS)


def _square(people: F64) -> float:
    """A bound on the squared norm of a person's features, each within [0, 1].

    The first is constant. The last three are marks for a state of health, of which a person has
    one at most, so they count once.
    """
    return people.shape[1] - 2.0


def insurance() -> Logged:
    """The RAND health insurance experiment: 20,190 person-years on one of 6 plans, by lot.

    A person is a constant, physical limitation, chronic diseases, and whether health is said to
    be good, fair or poor. A plan is its coinsurance rate and whether it has an individual
    deductible. The reward is 1 without a visit to a doctor in that year, and -1 with 6 or more.

    What people got for taking part is left out: it depended on the plan. Rows one after another
    with the same covariates are taken to be the years of one person.
    """
    from statsmodels.datasets import randhie  # noqa: PLC0415  # an extra

    table = randhie.load_pandas().data
    covariates = table.drop(columns="mdvis").to_numpy(dtype=np.float64)
    starts = np.any(covariates[1:] != covariates[:-1], axis=1)
    plans, chosen = np.unique(
        table[["lncoins", "idp"]].to_numpy(dtype=np.float64), axis=0, return_inverse=True
    )
    people = table[["physlm", "disea", "hlthg", "hlthf", "hlthp"]].to_numpy(dtype=np.float64)
    people[:, 1] = np.minimum(people[:, 1], _DISEASES) / _DISEASES
    visits = table["mdvis"].to_numpy(dtype=np.float64)
    return Logged(
        people=np.column_stack([np.ones(len(people)), people]),
        persons=np.concatenate([[0], np.cumsum(starts)]),
        chosen=chosen.ravel(),
        rewards=1 - 2 * np.minimum(visits, _VISITS) / _VISITS,
        offers=plans / [_PLAN_SCALE, 1.0],
    )


@dataclass(frozen=True)
class Labelled:
    """Records, and which of some actions is right for each.

    Attributes:
        records: of norm at most 1, shape (n, p).
        labels: 0, 1 and so on, shape (n,).
    """

    records: F64
    labels: I64

    @property
    def actions(self) -> int:
        """How many labels there are."""
        return int(self.labels.max()) + 1

    def sets(self, drawn: I64) -> F64:
        """The decision sets of some records, a parameter for each of K actions, (n, K, K p)."""
        own, p, count = self.records[drawn], self.records.shape[1], self.actions
        vectors = np.zeros((len(own), count, count * p))
        for action in range(count):
            vectors[:, action, action * p : (action + 1) * p] = own
        return vectors


def cancer() -> Labelled:
    """Breast cancer records from Wisconsin: 569 tumours, 30 measurements, malignant or benign.

    The mean and the deviation of each measurement are taken to be public, as if from an earlier
    study. A record is a constant and the standardised measurements, divided by 10; the few that
    are longer than 1 then are cut to 1.
    """
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415  # an extra

    found = load_breast_cancer()
    values = np.asarray(found.data, dtype=np.float64)
    return labelled((values - values.mean(axis=0)) / values.std(axis=0), found.target)


def digits() -> Labelled:
    """Handwritten digits: 1,797 images of 8 by 8 pixels with 17 shades, and which digit each is.

    A record is a constant and the mean ink of 16 squares of four pixels, within [-1, 1]; 17
    numbers divided by the square root of 17, so that no record is longer than 1.
    """
    from sklearn.datasets import load_digits  # noqa: PLC0415  # an extra

    found = load_digits()
    squares = np.asarray(found.images, dtype=np.float64).reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4))
    ink = 2 * squares.reshape(len(squares), -1) / _MOST_INK - 1
    records = np.column_stack([np.ones(len(ink)), ink])
    return Labelled(records / np.sqrt(records.shape[1]), np.asarray(found.target, np.int64))


def labelled(standardised: F64, labels: I64) -> Labelled:
    """Records from standardised measurements, with a constant in front.

    Args:
        standardised: shape (n, p - 1).
        labels: 0 or 1, shape (n,).
    """
    records = np.column_stack([np.ones(len(standardised)), standardised]) / _STANDARD
    norms = np.linalg.norm(records, axis=1, keepdims=True)
    return Labelled(records / np.maximum(1.0, norms * (1 + 1e-12)), np.asarray(labels, np.int64))
