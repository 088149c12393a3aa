"""The discrete Gaussian sampler, proved level by level on the shipped code.

Each level is rebuilt from the compiled kernel's own code, with the level below replaced by an
oracle that gives every answer in turn. The probabilities of all answers add up to a law that is
compared with the right one in exact arithmetic. What compiling could still change, the width of
integers, is tested against unbounded integers.

Nothing here is statistical except where a docstring says so; seeds are fixed.
"""

import inspect
import itertools
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from discreet.kernels import _discrete_gaussian as kernels
from discreet.kernels import _random as random

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Path = list[tuple[Any, Any]]  # questions and answers
Sum = dict[Fraction, Fraction]  # sum of coefficient * exp(-exponent), by exponent

ALL_ONES = 2**64 - 1
STDS = [1, 2, 3, 4]
KERNELS = {name: value for name, value in vars(kernels).items() if isinstance(value, Dispatcher)}
NO_WORDS: U64 = np.empty(0, dtype=np.uint64)


def words_of(seed: int, count: int) -> U64:
    words = np.empty(count, dtype=np.uint64)
    kernels.fill_words(random.seed_state(np.random.SeedSequence(seed)), words)
    return words


def rebuilt(*names: str, **replaced: object) -> Callable[..., Any]:
    """Shipped functions as plain Python, the last of which is returned, with others replaced."""
    namespace = {**vars(kernels), **replaced}
    for name in names:
        namespace[name] = types.FunctionType(KERNELS[name].py_func.__code__, namespace)
    return namespace[names[-1]]


def mutated(name: str, old: str, new: str, **replaced: object) -> Callable[..., Any]:
    """A shipped function with a mistake in it."""
    source = inspect.getsource(KERNELS[name].py_func)
    assert source.count(old) == 1
    namespace = {**vars(kernels), **replaced, "kernel": lambda function: function}
    exec(source.replace(old, new), namespace)  # noqa: S102  # our own source
    return namespace[name]


class Fork(Exception):  # noqa: N818  # a way to go on, not an error
    """A question that has no answer yet."""

    def __init__(self, question: object) -> None:
        super().__init__(question)
        self.question = question


def explored(
    run: Callable[[Callable[[Any], Any]], Any],
    answers: Callable[[Any], list[Any]],
    longest: int,
) -> Iterator[tuple[Path, Any]]:
    """All ways that ``run(ask)`` can go, with the result; None after ``longest`` questions."""
    scripts: list[tuple[Any, ...]] = [()]
    while scripts:
        script = scripts.pop()
        asked: Path = []

        def ask(question: object, script: tuple[Any, ...] = script, asked: Path = asked) -> object:
            if len(asked) == len(script):
                raise Fork(question)
            asked.append((question, script[len(asked)]))
            return asked[-1][1]

        try:
            yield asked, run(ask)
        except Fork as fork:
            if len(script) == longest:
                yield asked, None
            else:
                scripts += [(*script, answer) for answer in answers(fork.question)]


# Level 0: bits out of words, and what is computed from them without any probability.


def test_the_bits_taken_are_those_of_the_words_one_after_the_other() -> None:
    words = words_of(1, 3)
    whole = sum(int(word) << (64 * i) for i, word in enumerate(words))
    checked = rebuilt("_take")  # compiled code would not say that it reads past the end
    for at, width in itertools.product(range(194), range(63)):
        expected = (whole >> at & ((1 << width) - 1), at + width)
        if at + width > 192:
            expected = (0, kernels.OUT)
        assert kernels._take(words, at, width) == checked(words, at, width) == expected


def test_the_width_is_the_bit_length_of_the_largest_number() -> None:
    near_powers = (2**power + by for power in range(13, 58) for by in (-1, 0, 1))
    for bound in (*range(1, 2**13), *near_powers):
        assert kernels._width(bound) == (bound - 1).bit_length()


# Level 1: uniform numbers and fractions, from bits.


@pytest.mark.parametrize("bound", [*range(1, 70), 127, 128, 129, 255, 256, 257])
def test_each_number_below_a_bound_comes_from_one_string_of_bits_and_the_rest_try_again(
    bound: int,
) -> None:
    width = kernels._width(bound)

    def run(ask: Callable[[Any], Any]) -> object:
        below = rebuilt("_below", _take=lambda _, at, width: (ask(width), at + width))
        return below(None, 5, bound, width)

    found = list(explored(run, lambda width: list(range(2**width)), longest=1))
    assert all(question == width for path, _ in found for question, _ in path)
    done = sorted(result for _, result in found if result is not None)
    assert done == [(number, 5 + width) for number in range(bound)]
    assert len(found) == 2**width  # each string once: equally likely, and the others go on


def chance_of_yes(chance: Callable[..., Callable[..., Any]], a: int, b: int) -> Fraction:
    """The probability of a yes within 110 bits; all undecided ones together have at most 2^-110."""

    def run(ask: Callable[[Any], Any]) -> object:
        return chance(_take=lambda _, at, width: (ask(width), at + width))(None, 0, a, b)

    yes = open_ = Fraction(0)
    for path, result in explored(run, lambda _: [0, 1], longest=110):
        assert all(question == 1 for question, _ in path)
        weight = Fraction(1, 2 ** len(path))
        if result is None:
            open_ += weight
        else:
            assert result[1] == len(path)
            yes += weight if result[0] else 0
    assert open_ <= Fraction(1, 2**110)
    return yes


FRACTIONS = [
    *((a, b) for b in range(1, 9) for a in range(b + 1)),
    *((a, 130 * 2**50) for a in (1, 2**50, 129 * 2**50 + 1, 130 * 2**50 - 1)),
    *((a, 130 * (2**50 - 1)) for a in (0, 1, 2**49, 130 * (2**50 - 1) - 1)),
]


def right_chance(a: int, b: int, yes: Fraction) -> bool:
    return yes <= Fraction(a, b) <= yes + Fraction(1, 2**110)


@pytest.mark.parametrize(("a", "b"), FRACTIONS)
def test_a_fraction_is_the_probability_of_a_yes(a: int, b: int) -> None:
    yes = chance_of_yes(lambda **replaced: rebuilt("_chance", **replaced), a, b)
    assert right_chance(a, b, yes)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rest <<= 1", "rest <<= 2"),
        ("return digit == 1, at", "return digit == 0, at"),
        ("rest -= denominator", "rest -= 1"),
    ],
)
def test_a_wrong_fraction_is_found_out(old: str, new: str) -> None:
    wrong = 0
    for a, b in ((1, 3), (2, 3), (1, 4)):
        yes = chance_of_yes(lambda **given: mutated("_chance", old, new, **given), a, b)
        wrong += not right_chance(a, b, yes)
    assert wrong > 0


# Level 2: exp(-g), from fractions.


def first_failures(
    exp_chance: Callable[..., Callable[..., Any]], a: int, b: int, c: int, d: int
) -> tuple[dict[bool, Fraction], Fraction]:
    """Probabilities of yes and no, and of what is still open, after 110 questions."""

    def run(ask: Callable[[Any], Any]) -> object:
        return exp_chance(_chance=lambda _, at, p, q: (ask(Fraction(p, q)), at))(
            None, 0, a, b, c, d
        )

    def answers(chance: Fraction) -> list[bool]:
        return [answer for answer in (True, False) if (chance if answer else 1 - chance) > 0]

    found, open_ = {True: Fraction(0), False: Fraction(0)}, Fraction(0)
    for path, result in explored(run, answers, longest=110):
        weight = Fraction(1)
        for chance, answer in path:
            weight *= chance if answer else 1 - chance
        if result is None:
            open_ += weight
        else:
            found[bool(result[0])] += weight
    return found, open_


def right_exponential(found: dict[bool, Fraction], open_: Fraction, g: Fraction) -> bool:
    """Within 1e-30 of exp(-g) and of 1 - exp(-g), with 60 digits."""
    assert open_ < Fraction(1, 10**30)
    assert sum(found.values()) + open_ == 1
    with mpmath.workdps(60):
        exact = mpmath.exp(-mpmath.mpf(g.numerator) / g.denominator)
        yes = mpmath.mpf(found[True].numerator) / found[True].denominator
        return bool(abs(yes - exact) < mpmath.mpf(10) ** -30)


EXPONENTS = [
    (1, 2, 1, 1),
    (0, 1, 0, 1),
    (1, 1, 1, 1),
    *((j, s, 2 * k * s + j, (2 * k + 2) * s) for s in STDS for j in range(s) for k in range(5)),
    (2**50 - 2, 2**50 - 1, 128 * (2**50 - 1) + 2**50 - 2, 130 * (2**50 - 1)),
]


@pytest.mark.parametrize("exponents", sorted(set(EXPONENTS)))
def test_a_yes_has_probability_exp_of_minus_the_exponent(
    exponents: tuple[int, int, int, int],
) -> None:
    a, b, c, d = exponents
    g = Fraction(a, b) * Fraction(c, d)
    made = first_failures(lambda **replaced: rebuilt("_exp_chance", **replaced), *exponents)
    assert right_exponential(*made, g)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i & 1 == 1", "i & 1 == 0"),
        ("i += 1", "i += 2"),
        ("_chance(words, at, 1, i)", "_chance(words, at, 1, 1)"),
        ("_chance(words, at, c, d)", "_chance(words, at, a, b)"),
    ],
)
def test_a_wrong_exponential_is_found_out(old: str, new: str) -> None:
    made = first_failures(lambda **given: mutated("_exp_chance", old, new, **given), 1, 3, 7, 12)
    assert made[1] > Fraction(1, 10**30) or not right_exponential(*made, Fraction(7, 36))


# Level 3: one attempt, from exponentials, uniform numbers and a bit.


def times(weight: Sum, exponent: Fraction, *, yes: bool) -> Sum:
    """A sum of exponentials times exp(-exponent), or times 1 - exp(-exponent)."""
    product: Sum = defaultdict(Fraction)
    for power, coefficient in weight.items():
        product[power + exponent] += coefficient if yes else -coefficient
        if not yes:
            product[power] += coefficient
    return {power: coefficient for power, coefficient in product.items() if coefficient != 0}


def law_of_an_attempt(make: Callable[..., Callable[..., Any]], std: int) -> dict[int, Sum]:
    """The probability of each accepted number, as a sum of exponentials.

    Complete for all |n| < 5 std: with k <= 4, no path to them has more than 24 questions.
    """

    def run(ask: Callable[[Any], Any]) -> object:
        attempt = make(
            _exp_chance=lambda _, at, a, b, c, d: (ask(Fraction(a * c, b * d)), at + 1),
            _below=lambda _, at, bound, width: (ask(("below", bound, width)), at + 1),
            _take=lambda _, at, width: (ask(("bits", width)), at + 1),
        )
        return attempt(None, 0, std, kernels._width(std))

    def answers(question: object) -> list[Any]:
        if isinstance(question, Fraction):
            return [True, False] if question > 0 else [True]
        return list(range(std)) if question[0] == "below" else [0, 1]

    law: dict[int, Sum] = defaultdict(lambda: defaultdict(Fraction))
    for path, result in explored(run, answers, longest=24):
        if result is None or result[0] != kernels._ACCEPTED:
            continue
        weight: Sum = {Fraction(0): Fraction(1)}
        for question, answer in path:
            if isinstance(question, Fraction):
                weight = times(weight, question, yes=answer)
            else:
                assert question in {("below", std, kernels._width(std)), ("bits", 1)}
                share = Fraction(1, std if question[0] == "below" else 2)
                weight = {power: share * coefficient for power, coefficient in weight.items()}
        assert result[2] == len(path)
        for power, coefficient in weight.items():
            law[result[1]][power] += coefficient
    return {n: dict(weight) for n, weight in law.items()}


def is_discrete_gaussian(law: dict[int, Sum], std: int) -> bool:
    """P(n) = (1 - exp(-1/2)) / (2 std) * exp(-n^2 / (2 std^2)), term by term."""
    share, half = Fraction(1, 2 * std), Fraction(1, 2)
    squares = {n: Fraction(n * n, 2 * std * std) for n in {*law, *range(1 - 5 * std, 5 * std)}}
    return law == {n: {square: share, square + half: -share} for n, square in squares.items()}


@pytest.mark.parametrize("std", STDS)
def test_an_attempt_accepts_each_number_with_the_weight_of_the_discrete_gaussian(std: int) -> None:
    law = law_of_an_attempt(lambda **oracles: rebuilt("_whole_stds", "_attempt", **oracles), std)
    assert len(law) >= 10 * std - 1
    assert is_discrete_gaussian(law, std)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("_whole_stds", "k * (k - 1)", "k"),
        ("_whole_stds", "k * (k - 1)", "0"),
        ("_whole_stds", "k = -1", "k = 0"),
        ("_attempt", "range(k + 1)", "range(k)"),
        ("_attempt", "2 * k * std + j", "k * std + j"),
        ("_attempt", "(2 * k + 2) * std", "(2 * k + 1) * std"),
        ("_attempt", "if n == 0", "if n == std"),
        ("_attempt", "_REJECTED if n == 0 else _ACCEPTED", "_ACCEPTED"),
        ("_attempt", "-n, at", "n, at"),
    ],
)
def test_a_wrong_attempt_is_found_out(name: str, old: str, new: str) -> None:
    def make(**oracles: object) -> Callable[..., Any]:
        if name == "_attempt":
            whole = rebuilt("_whole_stds", **oracles)
            return mutated("_attempt", old, new, **oracles, _whole_stds=whole)
        return rebuilt("_attempt", **oracles, _whole_stds=mutated(name, old, new, **oracles))

    assert not is_discrete_gaussian(law_of_an_attempt(make, 3), 3)


# Level 4: attempts until one is accepted, sample after sample.


def test_attempts_go_on_where_the_last_one_stopped_until_one_is_accepted() -> None:
    no, yes = kernels._REJECTED, kernels._ACCEPTED
    script = [(no, 0, 70), (no, 0, 128), (yes, 7, 129), (yes, -8, 256), (no, 5, 300), (yes, 0, 321)]
    calls = []

    def attempt(_: U64, at: int, std: int, width: int) -> tuple[int, int, int]:
        calls.append((at, int(std), width))
        return script[len(calls) - 1]

    stds, out = np.array([3, 9], dtype=np.int64), np.full((2, 2), 99, dtype=np.int64)
    end = rebuilt("discrete_gaussian", _attempt=attempt)(NO_WORDS, 1, stds, out, 1)
    assert calls == [(64, 9, 4), (70, 9, 4), (128, 9, 4), (192, 3, 2), (256, 9, 4), (300, 9, 4)]
    assert end == (6, 4)  # each sample starts with a new word
    assert out.tolist() == [[99, 7], [-8, 0]]


# What compiling could change: the width of integers, and integers that become floating point.


def plain(words: U64, stds: list[int], count: int) -> tuple[list[int], int]:
    """Samples by the same code on Python's unbounded integers, and the position reached."""
    whole = sum(int(word) << (64 * i) for i, word in enumerate(words))

    def take(_: object, at: int, width: int) -> tuple[int, int]:
        return whole >> at & ((1 << width) - 1), at + width

    names = ("_width", "_below", "_chance", "_exp_chance", "_whole_stds", "_attempt")
    sample = rebuilt(*names, "discrete_gaussian", _take=take)
    out = np.empty((count, len(stds)), dtype=object)
    end, done = sample(words, 0, np.array(stds, dtype=object), out, 0)
    assert done == out.size
    return out.tolist(), end


def compiled(words: U64, stds: list[int], count: int) -> tuple[I64, int, int]:
    out = np.zeros((count, len(stds)), dtype=np.int64)
    at, done = kernels.discrete_gaussian(words, 0, np.array(stds, dtype=np.int64), out, 0)
    return out, at, done


WIDE = [1, 2, 3, 2**36, 2**36 + 1, 2**49 - 1, 2**50 - 1, 2**50]


def test_compiled_samples_are_those_of_unbounded_integers() -> None:
    words = words_of(2, 2_000)
    samples, at, _ = compiled(words, WIDE, 40)
    assert (samples.tolist(), at) == plain(words, WIDE, 40)


@pytest.mark.parametrize("std", [2**50 - 1, 2**50])
def test_compiled_fractions_are_those_of_unbounded_integers_at_the_far_end(std: int) -> None:
    words, k = words_of(3, 200), kernels.MOST_STDS
    python = rebuilt("_take", "_chance", "_exp_chance")
    for at, j in itertools.product(range(0, 4_000, 13), (0, 1, std // 3, std - 1)):
        exponents = (j, std, 2 * k * std + j, (2 * k + 2) * std)
        assert kernels._exp_chance(words, at, *exponents) == python(words, at, *exponents)


def test_no_kernel_has_a_floating_point_number_in_it() -> None:
    compiled(words_of(4, 100), [5], 2)
    assert len(KERNELS) == 9
    for function in reversed(KERNELS.values()):  # callers first, which load what they call
        fresh = numba.njit(function.py_func)  # types are kept for code that is not from the cache
        assert function.signatures
        for signature in function.signatures:
            fresh.compile(signature)
            found = fresh.overloads[signature].type_annotation.typemap.values()
            kinds = [str(kind) for kind in found if not isinstance(kind, numba.types.Module)]
            assert "uint64" in kinds or "int64" in kinds
            assert not any("float" in kind for kind in kinds)


# How far a draw can be, and what happens beyond.


def stream_of(bits: str, count: int) -> U64:
    """Words that start with these bits, lowest first, and go on with ones."""
    whole = int("0" + bits.ljust(64 * count, "1")[::-1], 2)
    return np.frombuffer(whole.to_bytes(8 * count, "little"), dtype=np.uint64).copy()


def test_the_farthest_draw_is_just_within_reach() -> None:
    # One is a success of probability exp(-1/2), zero-one a failure; j is then all ones.
    std = 2**50
    words = stream_of("1" * kernels.MOST_STDS + "01", 200)
    out, at, done = compiled(words, [std], 1)
    assert out.tolist() == [[1 - kernels.REACH * std]]
    assert (out.tolist(), at) == plain(words, [std], 1)
    assert done == 1
    assert kernels.REACH * kernels.LARGEST_STD < 2**57


def test_a_draw_beyond_reach_is_reported_and_not_made() -> None:
    words = stream_of("1" * (kernels.MOST_STDS + 1) + "01", 200)
    out, at, done = compiled(words, [2**50], 1)
    assert (out.tolist(), at, done) == ([[0]], kernels.TOO_FAR, 0)


@pytest.mark.parametrize("std", [0, -1, 2**50 + 1, -(2**63), 2**63 - 1])
def test_a_std_out_of_range_is_reported(std: int) -> None:
    out, at, done = compiled(words_of(5, 100), [7, std], 2)
    assert (at, done) == (kernels.BAD_STD, 1)
    assert (out[0, 1], *out[1]) == (0, 0, 0)


# Where the words run out.


@pytest.mark.parametrize("bits", ["", "0" * 1280, "1" * 64 + "01"])
@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_words_that_run_out_inside_the_first_sample_end_where_they_began(
    bits: str, count: int
) -> None:
    words = stream_of(bits[: 64 * count], count)
    for std in (1, 3, 2**50):
        out, at, done = compiled(words, [std], 1)
        assert (out.tolist(), at, done) == ([[0]], 0, 0)


CUT_STDS = [1, 2**36 + 1, 20]
CUT_WORDS = words_of(6, 400)
UNCUT = compiled(CUT_WORDS, CUT_STDS, 30)


@settings(deadline=None)
@given(st.lists(st.integers(0, 7), max_size=60))
def test_samples_do_not_depend_on_where_the_words_are_cut(sizes: list[int]) -> None:
    stds, out = np.array(CUT_STDS, dtype=np.int64), np.zeros((30, 3), dtype=np.int64)
    ends = [*itertools.accumulate(sizes), CUT_WORDS.size]
    rest, done, start, used = NO_WORDS, 0, 0, 0
    for end in ends:
        rest = np.concatenate((rest, CUT_WORDS[start:end]))
        at, done = kernels.discrete_gaussian(rest, 0, stds, out, done)
        rest, start, used = rest[at:], end, used + at
    assert UNCUT[2] == done == out.size
    assert UNCUT[1] == used
    assert (out == UNCUT[0]).all()
