"""The conformance suite of figures: documented, run at a small size, drawn, and judged from the table alone."""

from __future__ import annotations

from matplotlib.figure import Figure

from sfumato.experiments import VERDICTS, Experiment, Job
from sfumato.testing._checks import require, run


def check_experiment(experiment: type[Experiment]) -> None:
    """Run the conformance suite on a figure class, at its small size."""
    run(experiment.__name__, (_it_documents_itself, _it_runs_draws_and_judges), experiment)


def _it_documents_itself(experiment: type[Experiment]) -> None:
    made = experiment()
    require(made.title and made.heading, "a figure must have a title and cite its paper")
    require(made.description.endswith("."), "its description must be a sentence")
    require(made.data, "it must name its data")
    require(experiment.__doc__, "it must have a docstring")


def _it_runs_draws_and_judges(experiment: type[Experiment]) -> None:
    made = experiment()
    table = made.run(Job(quick=True, seed=made.seed))
    require(table.num_rows, "`run` must return a table with rows")
    figure = Figure(figsize=made.figsize, layout="constrained")
    made.draw(figure, table)
    require(figure.axes, "`draw` must plot the table")
    claims = made.claims(table)
    require(bool(claims) == made.makes_claims, "`makes_claims` and `claims` contradict each other")
    require({claim.verdict for claim in claims} <= set(VERDICTS), "a verdict must be one of `VERDICTS`")
