"""A figure that goes into a page and into files of its own."""

from dataclasses import dataclass
from pathlib import Path

from discreet.report._figures import Drawing
from discreet.report._files import replace
from discreet.report._page import Drawings


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """Drawings with one caption.

    Attributes:
        name: the beginning of its files' names.
        drawings: one for each panel, by a name for its file.
        caption: what is drawn, and how uncertain it is.
    """

    name: str
    drawings: tuple[Drawing, ...]
    caption: str

    def block(self) -> Drawings:
        """For a page."""
        return Drawings(
            drawings=tuple(drawing.svg for drawing in self.drawings), caption=self.caption
        )

    def write(self, folder: Path) -> list[Path]:
        """As .svg and .png files."""
        written = []
        for place, drawing in enumerate(self.drawings, 1):
            stem = self.name if len(self.drawings) == 1 else f"{self.name}-{place}"
            written.append(replace(folder / f"{stem}.svg", drawing.file().encode()))
            written.append(replace(folder / f"{stem}.png", drawing.png))
        return written
