"""Beyond the papers: the privacy-utility trade-off of each mechanism, as residual error against accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sfumato.attacks import ATTACKS
from sfumato.attacks.evidence.arrays import linear_map_model, mapped_copy, noisy_copy, random_orthogonal
from sfumato.experiments import Claim, Experiment, Job, _data, claim, distinct, select, to_table
from sfumato.experiments._plotting import COLOURS, MARKERS, legend
from sfumato.kernels.covariances import symmetric
from sfumato.keys.key import Key
from sfumato.levels import Level
from sfumato.models import of_type
from sfumato.models.gaussian_noise import GaussianNoise
from sfumato.release.manifest import Manifest
from sfumato.release.policy import Policy

LEVELS = (0.9, 0.75, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05)
_LABELLED = 0.2
"""The lowest level that is named in the picture."""
OPTIONS = {"gaussian": 'role = "gaussian"', "uniform": 'role = "uniform", domain = { min = 1, max = 10 }'}
"""The policy of every column under each mechanism."""


class Frontier(Experiment):
    """Privacy against utility, one point per level."""

    title = "Beyond: privacy-utility frontier of each mechanism"
    description = (
        "Right is safer, up is more useful. Privacy: the residual error of the best attack as a share of the "
        "variance, mean over the columns (`bayes` for noise, the posterior mean for replaced categories, and the "
        "known-input attack with 20 records for rotated copies). Utility: accuracy of 10-fold nearest neighbours "
        "within the copy; dashed: on the original. A rotated copy has no levels: one point."
    )
    data = "Breast Cancer Wisconsin (Original), 683 x 9, values 1 to 10"
    figsize = (7.2, 4.4)
    seed = 6

    def run(self, job: Job) -> pa.Table:
        """Measure privacy and utility of every mechanism at every level."""
        values, labels = _data.cancer()
        out = [{"mechanism": "original", "level": 1.0, "privacy": 0.0, "utility": _accuracy(values, labels)}]
        levels = job.size(LEVELS, LEVELS[::3])
        for repeat in job.track(range(job.size(10, 2))):
            rng, key = job.rng(repeat), job.key(repeat)
            for role in OPTIONS:
                out += _perturbed(role, levels, values, labels, key)
            out.append(_rotated(values, labels, rng))
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot one curve per mechanism."""
        axis = figure.subplots()
        axis.axhline(
            100 * select(table, "utility", mechanism="original")[0],
            color="#22303c",
            linestyle="--",
            linewidth=1,
            label="original",
        )
        for i, name in enumerate(m for m in distinct(table, "mechanism") if m != "original"):
            levels = distinct(to_table(r for r in table.to_pylist() if r["mechanism"] == name), "level")
            points = [
                (
                    select(table, "privacy", mechanism=name, level=v).mean(),
                    100 * select(table, "utility", mechanism=name, level=v).mean(),
                )
                for v in levels
            ]
            axis.plot(*zip(*points, strict=True), marker=MARKERS[i], color=COLOURS[i], label=name)
            beside = {"gaussian": (-6, -11), "uniform": (4, 4)}.get(name)
            for (x, y), level in zip(points, levels, strict=True):
                if beside and level >= _LABELLED:  # the lowest lie too close to each other
                    axis.annotate(f"{level:g}", (x, y), textcoords="offset points", xytext=beside, fontsize=7)
        axis.set_xlabel("residual error of the best attack (share of variance)")
        axis.set_ylabel("accuracy of nearest neighbours (%)")
        axis.grid(alpha=0.25)
        legend(axis, loc="lower left")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check that less trusted levels are safer, and that a rotation is useful but not safe."""

        def means(name: str, column: str) -> Any:
            levels = sorted(set(select(table, "level", mechanism=name)), reverse=True)
            return np.array([select(table, column, mechanism=name, level=v).mean() for v in levels])

        safer = all((np.diff(means(name, "privacy")) > -0.02).all() for name in OPTIONS)
        residual = float(means("rotation", "privacy")[0])
        original = float(select(table, "utility", mechanism="original")[0])
        rotated = float(means("rotation", "utility")[0])
        return [
            claim(
                "a less trusted level leaves an attacker a larger residual error",
                "docs/levels.md",
                "rising as fidelity falls, with steps of no less than -0.02, for both mechanisms",
                ", ".join(f"{n} {means(n, 'privacy')[0]:.2f} to {means(n, 'privacy')[-1]:.2f}" for n in OPTIONS),
                safer,
            ),
            claim(
                "a rotated copy keeps the full utility of distances",
                "giannella2010, section I",
                "nearest neighbours as accurate as on the original, within half a point",
                f"{rotated:.3f} against {original:.3f}",
                abs(rotated - original) < 0.005,
            ),
            claim(
                "a rotated copy reveals the data to anyone who knows a few records",
                "giannella2010, section IV",
                "with 20 known records of 9 columns, the residual error is below 2 % of the variance",
                f"{residual:.4f}",
                residual < 0.02,
            ),
        ]


def _perturbed(role: str, levels: Sequence[float], values: Any, labels: Any, key: Key) -> Iterator[dict[str, Any]]:
    """Privacy and utility of copies with Gaussian noise, or with replaced categories, at every level."""
    typed = values if role == "gaussian" else values.astype(int)
    table = pa.table({f"c{i}": column for i, column in enumerate(typed.T)})
    ladder = "".join(f"l{i} = {f}\n" for i, f in enumerate(levels))
    columns = "".join(f"c{i} = {{ {OPTIONS[role]} }}\n" for i in range(9))
    scheme = Policy.loads(f'dataset = "d"\norder = "keep"\n[levels]\n{ladder}[columns]\n{columns}').fit(table)
    for level in levels:
        copy = scheme.release(table, Level(level), key)
        observed = np.column_stack([copy.column(f"c{i}").to_numpy() for i in range(9)]).astype(float)
        yield {
            "mechanism": role,
            "level": level,
            "privacy": _noise_error(copy, observed, values)
            if role == "gaussian"
            else _replacement_error(observed, values, level),
            "utility": _accuracy(observed, labels),
        }


def _rotated(values: Any, labels: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Privacy against the known-input attack and utility of a rotated copy."""
    rows = values @ random_orthogonal(rng, 9).T
    known = rng.choice(len(values), 20, replace=False)
    evidence = mapped_copy(rows, linear_map_model(9, step=1e-9), known=values[known])
    privacy = min(_residual_error(ATTACKS["known-input"]().estimate(evidence).values, values), 1.0)
    return {"mechanism": "rotation", "level": 1.0, "privacy": privacy, "utility": _accuracy(rows, labels)}


def _accuracy(values: Any, labels: Any) -> float:
    """The accuracy of nearest neighbours, without scaling: all columns have one unit, and a rotation mixes them."""
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    model = make_pipeline(StandardScaler(with_std=False), KNeighborsClassifier(15))
    return float((cross_val_predict(model, values, labels, cv=folds) == labels).mean())


def _residual_error(estimate: Any, original: Any) -> float:
    """The mean square error as a share of the variance, mean over the columns."""
    return float((((estimate - original) ** 2).mean(axis=0) / original.var(axis=0)).mean())


def _noise_error(copy: pa.Table, observed: Any, original: Any) -> float:
    """The residual error of the attack `bayes` on a copy with Gaussian noise, by the covariance that it publishes."""
    [model] = of_type(Manifest.of(copy).models, GaussianNoise)
    evidence = noisy_copy(observed, symmetric(model.covariance))
    return _residual_error(ATTACKS["bayes"]().estimate(evidence).values, original)


def _replacement_error(observed: Any, original: Any, retention: float) -> float:
    """The residual error of the posterior mean of replaced categories, with the true shares as the prior."""
    errors = []
    for column in range(original.shape[1]):
        truth, released = original[:, column].astype(int), observed[:, column].astype(int)
        prior = np.bincount(truth, minlength=11)[1:] / len(truth)
        likelihood = np.full((10, 10), (1 - retention) / 10) + retention * np.eye(10)
        posterior = likelihood[released - 1] * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        errors.append(((posterior @ np.arange(1, 11) - truth) ** 2).mean() / truth.var())
    return float(np.mean(errors))
