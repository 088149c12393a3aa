"""The confidence set around the private estimate that a release supports.

How a set is made is the choice of the mechanism: the paper's ellipsoid (eq:def-ellip and
prop:calc-beta), or widths that add reward noise and privacy noise in quadrature (docs/width.md).
"""

from typing import TYPE_CHECKING

from discreet.mechanism._confidence import Ellipsoid, JointRegion, Region

if TYPE_CHECKING:
    from discreet.release._release import Release

__all__ = ["Ellipsoid", "JointRegion", "Region", "region"]


def region(release: "Release") -> Region:
    """The confidence set that a release supports: a function of the release alone."""
    mechanism = release.mechanism
    return mechanism.confidence.region(mechanism, release.number, release.gram, release.moment)
