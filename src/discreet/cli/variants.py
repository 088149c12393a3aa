"""`discreet variants`: the table of variants."""

from discreet.cli import _console as console
from discreet.cli._options import AsJson


def variants(as_json: AsJson = False) -> None:
    """List the variants: the ways to add noise, and one without."""
    from discreet.mechanism.variants import VARIANTS

    if as_json:
        console.print_json({row.name: row.summary for row in VARIANTS.values()})
    else:
        rows = [(row.name, row.summary) for row in VARIANTS.values()]
        console.print_table("variants", ["name", "what it is"], rows)
