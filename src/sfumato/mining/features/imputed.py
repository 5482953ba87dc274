"""Training sets by multiple imputation: several plausible originals of a copy, for any learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from sfumato.errors import MiningError
from sfumato.kernels import Floats
from sfumato.mining import Miner
from sfumato.mining.copies.copy import Copy
from sfumato.mining.copies.plausible_originals import PlausibleOriginals
from sfumato.mining.features.features import Features, Records
from sfumato.mining.features.reconstruction import one_hot
from sfumato.release.manifest import Manifest
from sfumato.tables.columns import numbers_of
from sfumato.tables.source import Source


@dataclass(frozen=True)
class Imputed:
    """The complete records of a copy, as several plausible originals."""

    features: Features
    values: list[Floats]
    """The features of each plausible original, one row per record."""
    targets: list[Floats]
    """The target of each, where it carries noise; else nothing."""

    @classmethod
    def of(cls, miner: Any, data: Records, labels: Floats, m: int, random_state: int) -> Imputed:
        """Impute the complete records of a copy, whose labels are known besides, if the target is no column."""
        if m < 1:
            raise MiningError(f"at least one imputation is needed, got {m}; 20 are usual")
        complete, names = data.complete, [column.name for column in data.features.columns]
        is_noisy = data.target in data.table.column_names and data.copy.noise_model(str(data.target)) is not None
        if not is_noisy and not any(column.is_perturbed for column in data.features.columns):
            return cls(data.features, [data.values[complete]], [])
        known = None
        if data.target in data.table.column_names:
            names.append(str(data.target))
        else:
            known = labels[:, None]
        table = data.table.select(names).filter(pa.array(complete))
        copy = Copy(data.copy.manifest, Source.of(table))
        drawn = PlausibleOriginals.of(copy, names, known).likely_tables(m, random_state)
        targets = [numbers_of(one, [str(data.target)])[:, 0] for one in drawn] if is_noisy else []
        return cls(data.features, [data.features.read(miner, one) for one in drawn], targets)


class ImputedLearner(Miner):
    """A learner of scikit-learn, fitted to several plausible originals of a copy."""

    def __init__(
        self,
        estimator: Any = None,
        *,
        manifest: Manifest | str | None = None,
        m: int = 20,
        random_state: int = 0,
    ) -> None:
        """Set the parameters.

        Args:
            estimator: the learner; gradient boosting, unless it is given.
            manifest: the manifest of the copy, needed if records are given as a data frame, which does not carry it;
                `original` for records that were never perturbed.
            m: the number of plausible originals.
            random_state: the seed of the imputations.

        """
        self.estimator = estimator
        self.manifest = manifest
        self.m = m
        self.random_state = random_state

    def _fit(
        self, default: Any, data: Records | None, features: Features, values: Floats, target: Any, weights: Any
    ) -> None:
        """Fit a learner to each plausible original, or to the records themselves if they were never perturbed."""
        if data is None:
            imputed = Imputed(features, [values], [])
        else:
            imputed = Imputed.of(self, data, target.astype(np.float64), self.m, self.random_state)
        options = {}
        if weights is not None:
            checked = _check_sample_weight(weights, values if data is None else data.values)
            options["sample_weight"] = checked if data is None else checked[data.complete]
        estimator = default if self.estimator is None else self.estimator
        targets: Sequence[Any] = imputed.targets or [target] * len(imputed.values)
        self.estimators_ = [
            clone(estimator).fit(_inputs(features, drawn), own, **options)
            for drawn, own in zip(imputed.values, targets, strict=True)
        ]
        self.features_ = features

    def _encoded(self, X: Any) -> Floats:
        """Unperturbed records, as the learners take them."""
        check_is_fitted(self)
        return _inputs(self.features_, self.features_.read(self, X))


def _inputs(features: Features, values: Floats) -> Floats:
    """Records as learners take them: categories in one-hot encoding and, where they are numbers, as these, too."""
    numbers = [
        np.array(feature.labels, np.float64)[values[:, i].astype(np.int64)]
        for i, feature in enumerate(features.columns)
        if feature.size and all(isinstance(label, int | float) for label in feature.labels)
    ]
    return np.column_stack([one_hot(features, values), *numbers])
