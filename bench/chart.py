"""`make bench-chart`: the charts of the documents, from the JSON that the benches have written.

    python bench/chart.py [--folder DIR]

Of `scale.json` (make bench-scale) and `peers.json` (make bench-peers), whichever is there, beside
which it puts `scale.svg` and `peers.svg`. Needs matplotlib (`uv pip install --group chart`).
"""

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OURS, THEIRS, GREY = "#2f6f8f", "#c2c9cf", "#6b7580"

NAMES = {
    "future": "future jobs in the index",
    "log": "events in the log before",
    "workers": "worker processes",
    "partitions": "partitions",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "figures")
    folder: Path = parser.parse_args().folder
    try:
        matplotlib: Any = import_module("matplotlib")
        matplotlib.use("svg")
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError:
        print("matplotlib is not here: uv pip install --group chart", file=sys.stderr)
        return 2
    # The same data give the same file; text stays text, so that it can be searched and read out.
    pyplot.rcParams.update(
        {"svg.hashsalt": "horolog", "svg.fonttype": "none", "font.size": 9, "axes.axisbelow": True}
    )
    for name, draw in (("scale", _scale), ("peers", _peers)):
        source = folder / f"{name}.json"
        if not source.exists():
            print(f"{source} is not there: make bench-{name} writes it", file=sys.stderr)
            continue
        figure = draw(pyplot, json.loads(source.read_text()))
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        print(folder / f"{name}.svg")
    return 0


def _scale(pyplot: Any, points: list[dict[str, Any]]) -> Any:
    """A panel for each curve, all with one scale."""
    curves = [name for name in NAMES if any(point["curve"] == name for point in points)]
    figure, panels = pyplot.subplots(
        1, len(curves), figsize=(3.1 * len(curves), 3.0), squeeze=False, layout="constrained"
    )
    for panel, curve in zip(panels[0], curves, strict=True):
        of = [point for point in points if point["curve"] == curve]
        at = range(len(of))
        panel.plot(at, [point["per_second"] for point in of], "o-", color=OURS)
        panel.set_xticks(list(at), [_short(point["size"]) for point in of])
        panel.set_title(NAMES[curve], fontsize=9)
        panel.set_ylim(0, 1.1 * max(point["per_second"] for point in points))
        panel.grid(axis="y", color="#e3e6e8")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("occurrences/s, whole path")
    return figure


def _peers(pyplot: Any, rows: list[dict[str, Any]]) -> Any:
    """Two bars for each peer: its jobs a second, and Horolog's in turn with it."""
    rows = sorted(rows, key=lambda row: (row["others"], -row["peer_per_s"]))
    figure, panel = pyplot.subplots(figsize=(7.2, 0.8 + 0.62 * len(rows)), layout="constrained")
    for number, row in enumerate(reversed(rows)):
        for offset, name, color in ((0.19, "horolog_per_s", OURS), (-0.19, "peer_per_s", THEIRS)):
            bar = panel.barh(number + offset, row[name], height=0.36, color=color)
            panel.bar_label(bar, [f"{row[name]:,.0f}"], padding=3, color=GREY)
    names = [
        row["peer"] + (f"\nbeside {_short(row['others'])} jobs" if row["others"] else "")
        for row in reversed(rows)
    ]
    panel.set_yticks(range(len(rows)), names)
    panel.set_xlabel("no-op jobs a second, in turn: Horolog (dark) and the peer")
    panel.spines[["top", "right"]].set_visible(False)
    panel.margins(x=0.12)
    return figure


def _short(size: int) -> str:
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if size >= unit:
            return f"{size / unit:g}{name}"
    return str(size)


if __name__ == "__main__":
    sys.exit(main())
