import numpy as np

from discreet.report._curves import Curve, Panel

ROUNDS = np.array([1.0, 10.0, 100.0])


def _curve(mean: list[float], stderr: list[float]) -> Curve:
    rounds = 10.0 ** np.arange(len(mean))
    return Curve(label="one", rounds=rounds, mean=np.array(mean), stderr=np.array(stderr))


def test_a_band_is_one_standard_error_either_side_of_the_mean() -> None:
    curve = Curve.over_seeds("x", ROUNDS, np.array([[1.0, 10.0, 20.0], [3.0, 14.0, 40.0]]))
    low, high = curve.band()
    assert curve.label == "x"
    np.testing.assert_allclose(curve.mean, [2.0, 12.0, 30.0])
    np.testing.assert_allclose(low, [1.0, 10.0, 20.0])  # two seeds: the mean less half the range
    np.testing.assert_allclose(high, [3.0, 14.0, 40.0])


def test_the_band_of_a_single_seed_is_its_curve() -> None:
    curve = Curve.over_seeds("x", ROUNDS, np.array([[1.0, 10.0, 20.0]]))
    for edge in curve.band():
        np.testing.assert_array_equal(edge, [1.0, 10.0, 20.0])


def test_a_logarithmic_axis_gets_no_zero_regret() -> None:
    drawable = _curve([0.0, 5.0, 6.0], [0.0, 1.0, 1.0]).drawable()
    np.testing.assert_array_equal(drawable.rounds, [10.0, 100.0])
    np.testing.assert_array_equal(drawable.mean, [5.0, 6.0])


def test_a_curve_cut_at_a_round_reaches_the_axis_there() -> None:
    drawable = _curve([1.0, 2.0, 3.0, 4.0], [0.1] * 4).drawable(first_round=50.0)
    np.testing.assert_array_equal(drawable.rounds, [10.0, 100.0, 1000.0])


def test_cutting_a_panel_cuts_all_its_curves_and_keeps_its_title() -> None:
    curves = (_curve([0.0, 1.0, 2.0], [0.1] * 3), _curve([1.0, 2.0, 3.0], [0.1] * 3))
    panel = Panel(title="both", curves=curves).since(100.0)
    assert panel.title == "both"
    assert [curve.rounds.tolist() for curve in panel.curves] == [[100.0], [100.0]]
