"""Random specifications and random inputs, extreme ones among them."""

from hypothesis import strategies as st

from discreet import features
from discreet.features import FeatureMap

FIELDS = ["a", "b", "tags", "vec", "nested.x", "dotted.name"]
IDS = ["x", "y", "7", "é"]
EXTREME = [0.0, -0.0, 5e-324, -2.2e-308, 1.7e308, -1.7e308, 1e-300, float("nan"), float("inf")]
TEXTS = ["", "red", "blue", "é" * 3, "\ud800", "a=b", "a.b", "\0", "7", "true"]

paths = st.builds(
    "{}.{}".format, st.sampled_from(["context", "action"]), st.sampled_from([*FIELDS, "id"])
)
whole_numbers = st.integers(-(10**400), 10**400) | st.integers(-5, 40)
numbers = st.floats() | st.sampled_from(EXTREME) | whole_numbers
scalars = st.one_of(st.none(), st.booleans(), numbers, st.sampled_from(TEXTS), st.text(max_size=4))
bags = st.lists(scalars, max_size=6) | st.sets(st.sampled_from(TEXTS), max_size=4)
vectors = st.lists(numbers, min_size=3, max_size=3)
values = st.one_of(
    scalars,
    bags,
    vectors,
    st.dictionaries(st.sampled_from(["x", "y"]), scalars | bags, max_size=2),
    st.just(b"bytes"),
    st.builds(object),
)
contexts = st.fixed_dictionaries({}, optional=dict.fromkeys([*FIELDS, "nested", "dotted"], values))
ids = st.sampled_from([*IDS, 7, 7.0, "unknown"])
known_ids = st.sampled_from([*IDS, 7])


def actions_with(chosen: st.SearchStrategy) -> st.SearchStrategy:
    described = st.builds(lambda one, found: {"id": one, "features": found}, chosen, contexts)
    flat = st.builds(lambda one, found: {**found, "id": one}, chosen, contexts)
    return st.lists(chosen | described | flat, min_size=1, max_size=4)


actions = actions_with(ids)
known_actions = actions_with(known_ids)

finite = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 5e-324, -1e150, 1e150, 1e-300])
intervals = st.tuples(finite, finite).filter(lambda pair: pair[0] < pair[1])
knots = st.none() | st.just([])


@st.composite
def numerics(draw: st.DrawFn, **more: float) -> object:
    low, high = draw(intervals)
    inner = draw(knots)
    if inner is None and high - low > 1e-3 and draw(st.booleans()):
        inner = draw(st.integers(2, 5))
    return features.numeric(draw(paths), low, high, inner, **more)


def leaves(**more: float) -> st.SearchStrategy:
    several = st.lists(st.sampled_from(TEXTS[1:4] + TEXTS[5:]), min_size=1, max_size=4, unique=True)
    wide = st.sampled_from([1, 2, 5])
    return st.one_of(
        st.just(features.intercept(**more)),
        numerics(**more),
        st.builds(
            lambda path, found, other: features.category(path, found, other=other, **more),
            paths,
            several,
            st.booleans(),
        ),
        st.builds(
            lambda path, buckets, digits: features.hashed(path, buckets, digits=digits, **more),
            paths | st.sampled_from(["context", "action"]),
            wide,
            st.sampled_from([None, 1, 3, 53]),
        ),
        st.just(features.action_id(IDS, **more)),
        st.builds(
            lambda path, dim, seed: features.projected(path, 3, dim, seed=seed, **more),
            paths | st.sampled_from(["context.vec", "action.vec"]),
            st.integers(1, 3),
            st.integers(0, 3),
        ),
    )


def combined(parts: st.SearchStrategy, **more: float) -> st.SearchStrategy:
    crossed = st.builds(
        lambda a, b, buckets: features.cross(a, b, buckets, **more),
        parts,
        parts,
        st.sampled_from([None, 1, 3]),
    )
    waves = st.builds(
        lambda of, count, scale, seed: features.random_fourier(
            of, count, scale=scale, seed=seed, **more
        ),
        st.lists(parts, min_size=1, max_size=2),
        st.integers(1, 3),
        st.sampled_from([1e-6, 0.5, 1e6]),
        st.integers(0, 3),
    )
    return crossed | waves


inner = leaves() | combined(leaves())


@st.composite
def parts(draw: st.DrawFn) -> object:
    weight = draw(st.sampled_from([1.0, 0.3, 1e-6, 1e6, 3.0]))
    return draw(leaves(weight=weight) | combined(inner, weight=weight))


shared_maps = st.builds(FeatureMap, st.lists(parts(), min_size=1, max_size=5))
disjoint_maps = st.builds(
    lambda found: features.disjoint(found, actions=IDS), st.lists(parts(), min_size=1, max_size=3)
)
maps = shared_maps | disjoint_maps
