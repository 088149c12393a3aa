"""A run's folder as docs/results has it: small enough to keep, whole enough to judge.

    python -m benchmarks.publish variants docs/results/variants     a folder of `discreet reproduce`

Keeps the figures and `claims.csv` as they are, and `provenance.json` without its list of cells. Of
`results.csv` it keeps the rows of the last round and of the last one shown, packed, as
`final.csv.xz`; `summary.csv` has a line for each setting of these, over its seeds.
"""

import argparse
import csv
import io
import json
import lzma
import shutil
import statistics
import sys
from pathlib import Path

Row = dict[str, str]


def final_rows(rows: list[Row]) -> list[Row]:
    """The rows at the last round, and at the last one shown if that is another."""
    return [row for row in rows if row["round"] in {row["rounds"], row.get("shown", "")}]


def summary(rows: list[Row]) -> list[Row]:
    """A line for each setting and round: how many seeds, and what is to be said of their values."""
    settings: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for row in rows:
        setting = tuple(one for one in row.items() if one[0] not in {"seed", "value"})
        settings.setdefault(setting, []).append(float(row["value"]))
    return [{**dict(setting), **_over(values)} for setting, values in settings.items()]


def _over(values: list[float]) -> Row:
    spread = statistics.stdev(values) if len(values) > 1 else float("nan")
    numbers = {
        "mean": statistics.fmean(values),
        "stderr": spread / len(values) ** 0.5,
        "median": statistics.median(values),
        "largest": max(values),
    }
    return {"seeds": str(len(values))} | {name: f"{value:.6g}" for name, value in numbers.items()}


def publish(run: Path, out: Path) -> None:
    """Write what is kept of a run into a folder, in the place of what was kept there before."""
    if out.exists() and not (out / "summary.csv").exists():
        raise SystemExit(f"{out} is there and was not written by this program; it is left as it is")
    with (run / "results.csv").open(newline="", encoding="utf-8") as file:
        final = final_rows(list(csv.DictReader(file)))
    facts = json.loads((run / "provenance.json").read_text(encoding="utf-8"))
    facts.pop("cells", None)
    kept = {
        "claims.csv": (run / "claims.csv").read_bytes(),
        "provenance.json": (json.dumps(facts, indent=1) + "\n").encode(),
        "summary.csv": _csv(summary(final)).encode(),
        "final.csv.xz": lzma.compress(_csv(final).encode(), preset=9),
        **{figure.name: figure.read_bytes() for figure in sorted((run / "figures").glob("*.svg"))},
    }
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name, content in kept.items():
        (out / name).write_bytes(content)


def _csv(rows: list[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def main(arguments: list[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.publish",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", type=Path, help="a folder that discreet reproduce wrote")
    parser.add_argument("out", type=Path, help="such as docs/results/variants, for what is kept")
    given = parser.parse_args(arguments)
    publish(given.run, given.out)


if __name__ == "__main__":
    sys.exit(main())
