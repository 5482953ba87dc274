"""Mining: right answers from blurred copies, one estimator a file.

A miner reads the law of the noise from the copy's manifest; nobody types a noise parameter. Miners follow scikit-learn:
parameters are set by the constructor and kept as they are, `fit` returns the miner, what was found ends in `_`.

    moments = Moments().fit("copy.parquet")
    print(moments.mean_, moments.mean_interval_)

What is estimated is the table that the copy was made of, held fixed: intervals tell what the noise may have done, and
nothing of how the table was sampled. From several copies of a table, only the best of each path is used: the others
hold nothing that it does not (li2012, Theorem 4), so a coalition gets the answers of its best member.

A new miner is one file in this folder with one final class; the documentation and the conformance tests find it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, ClassVar

from sklearn.base import BaseEstimator

from sfumato.family import Family

if TYPE_CHECKING:
    from sfumato.mining.copies.copy import on as on
    from sfumato.mining.density import Density as Density
    from sfumato.mining.frequencies import Frequencies as Frequencies
    from sfumato.mining.itemsets import Itemsets as Itemsets
    from sfumato.mining.linear_regression import LinearRegression as LinearRegression
    from sfumato.mining.logistic_regression import LogisticRegression as LogisticRegression
    from sfumato.mining.mixture import Mixture as Mixture
    from sfumato.mining.moments import Moments as Moments
    from sfumato.mining.naive_bayes import NaiveBayes as NaiveBayes
    from sfumato.mining.pca import PCA as PCA
    from sfumato.mining.report.profile import profile as profile
    from sfumato.mining.sql.answers import ask as ask
    from sfumato.mining.sql.expressions import column as column
    from sfumato.mining.sql.expressions import count as count
    from sfumato.mining.tree import DecisionTree as DecisionTree

_HOMES = {
    "DecisionTree": "tree",
    "Density": "density",
    "Frequencies": "frequencies",
    "Itemsets": "itemsets",
    "LinearRegression": "linear_regression",
    "LogisticRegression": "logistic_regression",
    "Mixture": "mixture",
    "Moments": "moments",
    "NaiveBayes": "naive_bayes",
    "PCA": "pca",
    "ask": "sql.answers",
    "column": "sql.expressions",
    "count": "sql.expressions",
    "on": "copies.copy",
    "profile": "report.profile",
}

__all__ = [
    "MINERS",
    "PCA",
    "DecisionTree",
    "Density",
    "Frequencies",
    "Itemsets",
    "LinearRegression",
    "LogisticRegression",
    "Miner",
    "Mixture",
    "Moments",
    "NaiveBayes",
    "ask",
    "column",
    "count",
    "on",
    "profile",
]


class Miner(BaseEstimator):
    """An estimator that knows how its data were blurred."""

    reference: ClassVar[str]
    """The paper and equation that it implements."""


MINERS = Family("sfumato.mining", "Miner")


def __getattr__(name: str) -> Any:
    """Import a miner when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.mining' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sfumato.mining.{_HOMES[name]}"), name)
