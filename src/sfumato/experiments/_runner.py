"""Running experiments and storing their results; a stored result of unchanged code at the same size is reused.

Each figure's files are complete before the next figure starts, so an interrupted run resumes where it stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from sfumato.errors import UnknownMember, nearest
from sfumato.experiments import AGREES, CHOSEN, EXPERIMENTS, PAPERS, Claim, Experiment, Job
from sfumato.experiments._code_digests import digests
from sfumato.experiments._data import MissingData
from sfumato.pages.svg import STYLE
from sfumato.tables.atomic import atomic_path, write_text


@dataclass(frozen=True)
class Result:
    """The outcome of one experiment, as it is stored beside its table and plots."""

    name: str
    paper: str
    heading: str
    title: str
    description: str
    data: str
    quick: bool
    seed: int
    seconds: float
    claims: tuple[Claim, ...]
    table_digest: str
    """The digest of the code that computed the table."""
    presentation_digest: str
    """The digest of the code that plotted and judged the table."""
    missing_data: str = ""
    """Why the experiment could not be run: which data are missing, and how to provide them."""
    cached: bool = False
    """Whether an earlier run computed the table."""

    @property
    def stem(self) -> str:
        """The name of its files, without suffix."""
        return self.name.replace("/", "-")


def names() -> list[str]:
    """The names of all figures, `PAPER/FIGURE`, in the order of the papers; no experiment is imported."""
    return sorted((name.replace("-", "/", 1) for name in EXPERIMENTS), key=_order)


def experiment(name: str) -> Experiment:
    """The experiment with this name, such as `li2012/fig2`."""
    found: Experiment = EXPERIMENTS[name.replace("/", "-")]()
    return found


def _order(name: str) -> tuple[int, str, int, str]:
    """The sort key of a figure: its paper, then figures by number, then tables and examples."""
    paper, _, figure = name.partition("/")
    papers = list(PAPERS)
    digits = "".join(c for c in figure if c.isdigit())
    number = int(digits or 0) if figure.startswith("fig") else 99
    return papers.index(paper) if paper in papers else len(papers), paper, number, name


def matching(patterns: Sequence[str]) -> list[str]:
    """The figures with these names or of these papers; without any, all figures but those of faulty plug-ins."""
    if not patterns:
        usable = EXPERIMENTS.members()
        return [name for name in names() if name.replace("/", "-") in usable]
    every = names()
    out = []
    for pattern in patterns:
        found = [name for name in every if name == pattern or name.startswith(f"{pattern}/")]
        if not found:
            raise UnknownMember(f"no paper or figure is called {pattern!r}; {nearest(pattern, [*PAPERS, *every])}")
        out += found
    return [name for name in every if name in out]


def reproduce(
    patterns: Sequence[str],
    folder: Path,
    *,
    quick: bool,
    fresh: bool = False,
    stage: Callable[[str, int], None] = lambda _text, _total: None,
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[Result]:
    """Run each experiment that has no valid result in the folder, and yield the results of all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in matching(patterns):
        chosen = experiment(name)
        stage(name, 100)
        earlier = None if fresh else stored(folder, chosen, quick)
        if earlier is not None:
            yield earlier
            continue
        job = Job(quick, chosen.seed, advance)
        start = time.perf_counter()
        try:
            table = chosen.run(job)
        except MissingData as error:
            yield _result(chosen, quick, 0.0, (), missing_data=str(error))
            continue
        yield _store(folder, chosen, table, quick, time.perf_counter() - start)


def _store(folder: Path, chosen: Experiment, table: pa.Table, quick: bool, seconds: float) -> Result:
    """Write the table first and the JSON file last, since its presence means that everything is complete."""
    stem = folder / chosen.name.replace("/", "-")
    stem.with_suffix(".json").unlink(missing_ok=True)
    with atomic_path(stem.with_suffix(".csv")) as part:
        pyarrow.csv.write_csv(table, part)
    return _present(stem, chosen, quick, seconds)


def _present(stem: Path, chosen: Experiment, quick: bool, seconds: float) -> Result:
    """Plot and judge a stored table."""
    table = pyarrow.csv.read_csv(stem.with_suffix(".csv"))
    _draw(chosen, table, stem)
    result = _result(chosen, quick, seconds, tuple(_judged(chosen, one) for one in chosen.claims(table)))
    write_text(stem.with_suffix(".json"), json.dumps(asdict(result), indent=1, ensure_ascii=False))
    return result


def _judged(chosen: Experiment, one: Claim) -> Claim:
    """A claim that agrees under settings that the paper does not state, said so."""
    return replace(one, verdict=CHOSEN) if chosen.chosen_settings and one.verdict == AGREES else one


def _draw(chosen: Experiment, table: pa.Table, stem: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - most commands draw nothing
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({**STYLE, "font.size": 9.5}):
        figure = Figure(figsize=chosen.figsize, layout="constrained")
        figure.suptitle(chosen.title, fontsize=10.5, fontweight="bold", x=0.01, ha="left")
        chosen.draw(figure.subfigures(1, 1), table)  # a subfigure keeps its legend below the title
        figure.supxlabel(f"data: {chosen.data_source()}", fontsize=7.5, x=0.99, ha="right", color="#5a6772")
        for suffix, options in ((".png", {"dpi": 150}), (".svg", {"metadata": {"Date": None}})):
            with atomic_path(stem.with_suffix(suffix)) as part:
                figure.savefig(part, format=suffix[1:], **options)


def _result(
    chosen: Experiment, quick: bool, seconds: float, claims: tuple[Claim, ...], missing_data: str = ""
) -> Result:
    table_digest, presentation_digest = digests(chosen)
    return Result(
        name=chosen.name,
        paper=chosen.paper,
        heading=chosen.heading,
        title=chosen.title,
        description=chosen.description,
        data="" if missing_data else chosen.data_source(),
        quick=quick,
        seed=chosen.seed,
        seconds=seconds,
        claims=claims,
        table_digest=table_digest,
        presentation_digest=presentation_digest,
        missing_data=missing_data,
    )


def stored(folder: Path, chosen: Experiment, quick: bool) -> Result | None:
    """The result of an earlier run, if the same code computed it at this size from the data available now."""
    stem = folder / chosen.name.replace("/", "-")
    result, (table_digest, presentation_digest) = load(stem.with_suffix(".json")), digests(chosen)
    if result is None or result.quick != quick or result.table_digest != table_digest:
        return None
    if not _uses_available_data(chosen, result):
        return None
    if result.presentation_digest == presentation_digest:
        return result
    return _present(stem, chosen, quick, result.seconds)


def _uses_available_data(chosen: Experiment, result: Result) -> bool:
    """Whether the result was computed from the data available now; a result stays valid when its data disappear."""
    try:
        return chosen.data_source() == result.data
    except MissingData:
        return True


def load(path: Path) -> Result | None:
    """A stored result; None if the file is missing, incomplete or of another version."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        claims = tuple(Claim(**claim) for claim in data.pop("claims"))
        return Result(**{**data, "claims": claims, "cached": True})
    except (OSError, ValueError, TypeError, KeyError):
        return None
