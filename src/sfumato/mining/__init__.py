"""Mining: estimators that give unbiased answers about the original from perturbed copies, one per file.

An estimator reads the distribution of the noise from the copy's manifest, so no noise parameter has to be given.
Estimators follow scikit-learn: the constructor sets parameters, `fit` returns the estimator, and the names of fitted
attributes end in `_`.

    moments = Moments().fit("copy.parquet")
    print(moments.mean_, moments.mean_interval_)

The estimand is the table that the copy was made of: intervals cover the uncertainty due to noise, not that of
sampling the table from a population. Of several copies of a table only the most faithful on each path is used, since
the others add no information to it (li2012, Theorem 4); a coalition gets the answers of its best member.

A new estimator is one file in this package with one final class derived from `Miner`. The class can be imported from
here by its name, and the documentation and the conformance tests find it. Type checkers see the classes in their own
modules, such as `sfumato.mining.density.Density`.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from sfumato.family import Family


class Miner(BaseEstimator):
    """An estimator for the original that corrects for the perturbation of a copy."""

    reference: ClassVar[str]
    """The paper and equation that it implements."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Parameters other than the defaults, which the conformance suite tries; it has columns `age`, `score`, ..."""


MINERS = Family("sfumato.mining", "Miner")

_FUNCTIONS = {
    "ask": "sql.answers",
    "column": "sql.expressions",
    "combine": "copies.imputation",
    "count": "sql.expressions",
    "estimate": "copies.estimation",
    "impute": "copies.imputation",
    "performance": "features.performance",
    "plan": "sql.plan",
    "profile": "report.profile",
    "with_engine": "copies.copy",
}
"""The functions of this package, and their modules."""


def __getattr__(name: str) -> Any:
    """Import an estimator or a function when it is first used."""
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
    if name == "__all__":
        return ["MINERS", "Miner", *_FUNCTIONS, *_estimators()]
    if not name.startswith("_") and (estimator := _estimator(name)) is not None:
        return estimator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FUNCTIONS, *_estimators()})


def _estimator(name: str) -> Any:
    """The estimator of a class name: in the file of that name if there is one, else anywhere in the family."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    if words in MINERS and MINERS[words].__name__ == name:
        return MINERS[words]
    is_module = importlib.util.find_spec(f"{__name__}.{name}") is not None
    return None if is_module else _estimators().get(name)


def _estimators() -> dict[str, Any]:
    """All estimators by their class names."""
    return {estimator.__name__: estimator for estimator in MINERS.members().values()}
