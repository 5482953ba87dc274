"""The two survey modes at equal leakage, on the House votes: `python -m tests.survey.modes` draws the figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfumato.experiments._votes import Comparison, compare

PICTURE = Path(__file__).parents[2] / "src/sfumato/service/web/static/survey-modes.svg"


def draw(found: list[Comparison], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "survey modes"
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    bits = [one.bits for one in found]
    for name, colour, marker, values in (
        ("randomised, the default", "#00639b", "o", [one.randomised for one in found]),
        ("guided (zhang2005, corrected)", "#b34700", "s", [one.guided for one in found]),
    ):
        error = [2 * one.std(ddof=1) / np.sqrt(len(one)) for one in values]
        mean = [100 * one.mean() for one in values]
        axes.errorbar(bits, mean, [100 * e for e in error], color=colour, marker=marker, capsize=3, label=name)
    axes.set_xlabel("leakage: mutual information per respondent (bits, of 7.8)")
    axes.set_ylabel("accuracy of a naive Bayes\nclassifier (%)")
    axes.legend(loc="lower right", frameon=False)
    axes.set_title("House votes: better models at equal leakage", loc="left", fontsize=11)
    axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    compared = list(compare((1, 2, 3, 6, 9), 200, np.random.default_rng(2005)))
    draw(compared, PICTURE)
    for one in compared:
        gain, error = one.gain
        print(
            f"k = {one.level}: {one.bits:.2f} bits, guided {one.guided.mean():.3f}, randomised "
            f"{one.randomised.mean():.3f}, better by {gain:+.3f} ({error:.3f})"
        )
