"""Beyond the papers: margin-preserving copies, from the original to synthetic data, beside copies with plain noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats
from scipy.special import ndtr, ndtri
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import roc_auc_score

from sfumato.experiments import Claim, Experiment, Job, _data, claim, select, to_table
from sfumato.experiments._plotting import COLOURS, MARKERS, legend
from sfumato.release.policy import Policy
from sfumato.release.scheme import TableScheme

LEVELS = (0.9, 0.7, 0.5, 0.3, 0.1)
MECHANISMS = ("copula", "gaussian and uniform")
CLASS = "income"
SYNTHETIC = 0.01
"""The fidelity at which copies are compared with synthetic data, which discloses as little about a record."""

RIVALS = ("shuffle", "synthesizer")
"""Data shuffling (Muralidhar and Sarathy 2006), and a Gaussian copula of average ranks with empirical margins."""

TARGETS = ("age", "capital-gain")
"""The columns that an attacker estimates."""


class Dial(Experiment):
    """What a copy is good for, and what it discloses, one point per level."""

    title = "Beyond: a dial from the original to synthetic data"
    description = (
        "Left: the largest change of a rank correlation between two numeric columns. Middle: the area under the ROC "
        "curve of gradient boosting, trained on one half of the copy as if it were the original and tested on the "
        "other half of the original; dashed: trained on the original. Right: the residual error, as a share of the "
        "variance of capital-gain, of gradient boosting that knows half of the true records."
    )
    data = "Adult (UCI), 48,842 x 15"
    figsize = (9.6, 3.4)
    seed = 11

    def run(self, job: Job) -> pa.Table:
        """Measure copies of both mechanisms at every level."""
        rows = job.rng(0).permutation(48_842)[: job.size(48_842, 12_000)]
        table, iterations = _data.adult_table().take(pa.array(rows)), job.size(100, 60)
        out = [{"mechanism": "original", "level": 1.0, "measure": "auc", "value": _auc(table, table, iterations)}]
        schemes = {mechanism: _scheme(mechanism, table) for mechanism in MECHANISMS}
        for level, mechanism in job.track([(level, one) for level in LEVELS for one in MECHANISMS]):
            copy = schemes[mechanism].release(table, level, job.key(0))
            measured = dict(_measured(table, copy, iterations))
            out += [{"mechanism": mechanism, "level": level, "measure": m, "value": v} for m, v in measured.items()]
        synthetic = {"copula": schemes["copula"].release(table, SYNTHETIC, job.key(0))}
        synthetic |= {name: _rival(name, table, job.rng(1)) for name in RIVALS}
        for mechanism, copy in synthetic.items():
            measured = {f"synthetic {measure}": value for measure, value in _measured(table, copy, iterations)}
            out += [{"mechanism": mechanism, "level": SYNTHETIC, "measure": m, "value": v} for m, v in measured.items()]
        return to_table(out)

    def draw(self, figure: Any, table: pa.Table) -> None:
        """Plot one panel per measure."""
        labels = {"spearman": "largest change of a rank correlation", "auc": "AUC", "capital-gain": "residual error"}
        for axis, (measure, label) in zip(figure.subplots(1, 3), labels.items(), strict=True):
            for i, mechanism in enumerate(MECHANISMS):
                values = select(table, "value", mechanism=mechanism, measure=measure)
                axis.plot(LEVELS, values, marker=MARKERS[i], color=COLOURS[i], label=mechanism)
            if measure == "auc":
                original = select(table, "value", mechanism="original")[0]
                axis.axhline(original, color="#22303c", linestyle="--", linewidth=1, label="original")
            axis.set_xlabel("fidelity")
            axis.set_ylabel(label)
            axis.grid(alpha=0.25)
        legend(figure.axes[1], loc="lower right")

    def claims(self, table: pa.Table) -> list[Claim]:
        """Check margins, rank correlations, the unmodified model, and the protection of a heavy-tailed column."""
        found = {
            (mechanism, measure): select(table, "value", mechanism=mechanism, measure=measure)
            for mechanism in MECHANISMS
            for measure in ("margin", "spearman", "auc", *TARGETS)
        }
        copula = {measure: found["copula", measure] for _, measure in found}
        plain = found["gaussian and uniform", "auc"]
        original = select(table, "value", mechanism="original")[0]
        return [
            claim(
                "a copy has the margins of the original at every level",
                "docs/synthetic.md",
                "the distribution functions differ by less than those of two samples do, once in a million",
                f"{copula['margin'].max():.2f} of that",
                bool((copula["margin"] <= 1.0).all()),
            ),
            claim(
                "a copy has the rank correlations of the original at every level",
                "docs/synthetic.md",
                "none changes by more than 0.05",
                f"{copula['spearman'].max():.3f}, with plain noise {found[MECHANISMS[1], 'spearman'].max():.3f}",
                bool(copula["spearman"].max() < 0.05),
            ),
            claim(
                "an ordinary model can be trained on a copy as it stands",
                "docs/synthetic.md",
                "at fidelity 0.1 an AUC above that of plain noise, and at most 0.06 below the original",
                f"{copula['auc'][-1]:.3f}, with plain noise {plain[-1]:.3f}",
                bool(copula["auc"][-1] > max(plain[-1], original - 0.06)),
            ),
            claim(
                "a heavy tail is protected",
                "docs/synthetic.md",
                "at fidelity 0.7 an attacker has a residual error of at least 0.3 of the variance of capital-gain",
                f"{copula['capital-gain'][1]:.2f}, with plain noise {found[MECHANISMS[1], 'capital-gain'][1]:.2f}",
                bool(copula["capital-gain"][1] >= 0.3),
            ),
            _synthetic_claim(table),
        ]


def _synthetic_claim(table: pa.Table) -> Claim:
    """Synthetic data of the same disclosure risk are no better."""
    names = ("copula", *RIVALS)
    risk, auc, change = (
        [float(select(table, "value", mechanism=name, measure=f"synthetic {measure}")[0]) for name in names]
        for measure in ("age", "auc", "spearman")
    )
    listed = ", ".join(
        f"{name} {a:.3f} and {b:.3f} (residual error of age {c:.2f})"
        for name, a, b, c in zip(names, auc, change, risk, strict=True)
    )
    better = auc[0] >= max(auc) - 0.005 and change[0] <= min(change) + 0.005
    return claim(
        f"at fidelity {SYNTHETIC:g}, a copy is as good as other synthetic data of the same disclosure risk",
        "docs/synthetic.md",
        "AUC at most 0.005 below, and the largest change of a rank correlation at most 0.005 above the best of them",
        listed,
        better and min(risk) > 0.95,
    )


def _scheme(mechanism: str, table: pa.Table) -> TableScheme:
    """A scheme whose copies are in the order of the table."""
    roles = {
        field.name: "copula" if mechanism == "copula" else "gaussian" if pa.types.is_integer(field.type) else "uniform"
        for field in table.schema
    }
    columns = "".join(f'"{name}" = "{role}"\n' for name, role in roles.items())
    ladder = "".join(f"l{i} = {one}\n" for i, one in enumerate(LEVELS))
    policy = Policy.loads(f'dataset = "adult"\norder = "keep"\n[levels]\n{ladder}[columns]\n{columns}')
    return policy.fit(table)


def _rival(name: str, table: pa.Table, rng: np.random.Generator) -> pa.Table:
    """Synthetic data from the correlations of normal scores of average ranks; categories are in the order of names."""
    columns = [table[column].to_numpy(zero_copy_only=False) for column in table.column_names]
    rows = len(columns[0])
    coded = [np.unique(column, return_inverse=True)[1] for column in columns]
    scores = np.column_stack([ndtri((stats.rankdata(one) - 0.5) / rows) for one in coded])
    drawn = rng.multivariate_normal(np.zeros(len(columns)), np.corrcoef(scores.T), rows)
    made = {}
    for column, values, new in zip(table.column_names, columns, drawn.T, strict=True):
        ranks = stats.rankdata(new, "ordinal") - 1 if name == "shuffle" else np.floor(ndtr(new) * rows)
        made[column] = np.sort(values)[ranks.astype(np.int64)]
    return pa.table(made)


def _measured(table: pa.Table, copy: pa.Table, iterations: int) -> Iterator[tuple[str, float]]:
    """Utility and risk of a copy."""
    names = [field.name for field in table.schema if pa.types.is_integer(field.type)]
    one, two = (np.column_stack([part[name].to_numpy() for name in names]).astype(float) for part in (table, copy))
    threshold = 2.7 * np.sqrt(2 / len(one))  # two samples of one distribution differ by more once in a million
    yield "margin", max(stats.ks_2samp(a, b).statistic for a, b in zip(one.T, two.T, strict=True)) / threshold
    yield "spearman", float(np.abs(stats.spearmanr(one)[0] - stats.spearmanr(two)[0]).max())
    yield "auc", _auc(table, copy, iterations)
    known = np.random.default_rng(0).random(len(one)) < 0.5
    for name in TARGETS:
        truth, model = one[:, names.index(name)], HistGradientBoostingRegressor(max_iter=iterations, random_state=0)
        estimate = model.fit(two[known], truth[known]).predict(two[~known])
        yield name, float(((estimate - truth[~known]) ** 2).mean() / truth[~known].var())


def _auc(table: pa.Table, copy: pa.Table, iterations: int) -> float:
    """The AUC, on one half of the original, of a model that was trained on the other half of a copy."""
    (inputs, _), (training, labels) = (_encoded(part, table) for part in (table, copy))
    classes = table[CLASS].to_numpy(zero_copy_only=False)
    half = np.random.default_rng(1).random(len(classes)) < 0.5
    model = HistGradientBoostingClassifier(max_iter=iterations, random_state=0).fit(training[half], labels[half])
    return float(roc_auc_score(classes[~half] == model.classes_[1], model.predict_proba(inputs[~half])[:, 1]))


def _encoded(table: pa.Table, like: pa.Table) -> tuple[Any, Any]:
    """The columns but the class as numbers, categories by their order in another table, and the class."""
    columns = []
    for field in like.schema:
        if field.name != CLASS:
            values = table[field.name].to_numpy(zero_copy_only=False)
            known = np.unique(like[field.name].to_numpy(zero_copy_only=False))
            columns.append(values if pa.types.is_integer(field.type) else np.searchsorted(known, values))
    return np.column_stack(columns).astype(float), table[CLASS].to_numpy(zero_copy_only=False)
