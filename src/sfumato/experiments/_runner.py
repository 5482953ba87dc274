"""Running experiments: what was made before, by the same code and at the same size, is not made again.

Each figure is finished by itself and its files appear at once, so that a run that is stopped goes on where it was.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from sfumato.errors import UnknownMember, nearest
from sfumato.experiments import EXPERIMENTS, PAPERS, Claim, Experiment, Job
from sfumato.experiments._code_digests import digests
from sfumato.experiments._data import MissingData
from sfumato.pages.svg import STYLE, figure_class
from sfumato.tables.atomic import replace_text, replacing


@dataclass(frozen=True)
class Result:
    """What became of one figure."""

    name: str
    paper: str
    title: str
    about: str
    data: str
    quick: bool
    seed: int
    seconds: float
    claims: tuple[Claim, ...]
    digest: str
    """Of the code that made its table."""
    look: str
    """Of all its code: a table is drawn and judged again when only that has changed."""
    missing: str = ""
    """Why it could not be made."""
    cached: bool = False

    @property
    def stem(self) -> str:
        """The name of its files, without their endings."""
        return self.name.replace("/", "-")


def names() -> list[str]:
    """All addresses, in the order of the papers."""
    found = [EXPERIMENTS[name]().name for name in EXPERIMENTS.names()]
    return sorted(found, key=lambda name: (list(PAPERS).index(name.split("/")[0]), _place(name)))


def _place(name: str) -> tuple[int, str]:
    digits = "".join(c for c in name.split("/")[1] if c.isdigit())
    return (int(digits or 0) if "/fig" in name else 99, name)


def chosen(asked: Sequence[str]) -> list[str]:
    """The figures that were asked for: by paper, or by paper and figure."""
    every = names()
    out = []
    for one in asked:
        found = [name for name in every if name == one or name.startswith(f"{one}/")]
        if not found:
            raise UnknownMember(f"no paper or figure is called {one!r}; {nearest(one, [*PAPERS, *every])}")
        out += found
    return [name for name in every if name in out] if asked else every


def reproduce(
    asked: Sequence[str],
    folder: Path,
    *,
    quick: bool,
    fresh: bool = False,
    stage: Callable[[str, int], None] = lambda _text, _total: None,
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[Result]:
    """Make each figure that is not there yet, and say what became of it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in chosen(asked):
        made = EXPERIMENTS[name.replace("/", "-")]()
        stage(name, 100)
        kept = None if fresh else stored(folder, made, quick)
        if kept is not None:
            yield kept
            continue
        job = Job(quick, made.seed, advance)
        began = time.perf_counter()
        try:
            table = made.run(job)
        except MissingData as error:
            yield _result(made, quick, 0.0, (), missing=str(error))
            continue
        yield _write(folder, made, table, quick, time.perf_counter() - began)


def _write(folder: Path, made: Experiment, table: pa.Table, quick: bool, seconds: float) -> Result:
    """The table first; what says that all is there comes last."""
    stem = folder / made.name.replace("/", "-")
    stem.with_suffix(".json").unlink(missing_ok=True)
    with replacing(stem.with_suffix(".csv")) as part:
        pyarrow.csv.write_csv(table, part)
    return _finish(stem, made, quick, seconds)


def _finish(stem: Path, made: Experiment, quick: bool, seconds: float) -> Result:
    """Pictures and verdicts of a stored table."""
    read = pyarrow.csv.read_csv(stem.with_suffix(".csv"))
    _draw(made, read, stem)
    found = _result(made, quick, seconds, tuple(made.claims(read)))
    replace_text(stem.with_suffix(".json"), json.dumps(asdict(found), indent=1, ensure_ascii=False))
    return found


def _draw(made: Experiment, table: pa.Table, stem: Path) -> None:
    figure_of = figure_class()
    import matplotlib as mpl  # noqa: PLC0415 - an extra

    with mpl.rc_context({**STYLE, "font.size": 9.5}):
        figure = figure_of(figsize=made.size, layout="constrained")
        figure.suptitle(made.title, fontsize=10.5, fontweight="bold", x=0.01, ha="left")
        made.draw(figure.subfigures(1, 1), table)  # whose legend stays below the title
        figure.supxlabel(f"data: {made.source()}", fontsize=7.5, x=0.99, ha="right", color="#5a6772")
        for ending, options in ((".png", {"dpi": 150}), (".svg", {"metadata": {"Date": None}})):
            with replacing(stem.with_suffix(ending)) as part:
                figure.savefig(part, format=ending[1:], **options)


def _result(made: Experiment, quick: bool, seconds: float, claims: tuple[Claim, ...], missing: str = "") -> Result:
    paper = made.name.split("/")[0]
    data = "" if missing else made.source()
    return Result(
        made.name, paper, made.title, made.about, data, quick, made.seed, seconds, claims, *digests(made), missing
    )


def stored(folder: Path, made: Experiment, quick: bool) -> Result | None:
    """What an earlier run left of a figure, if the same code made it at this size."""
    stem = folder / made.name.replace("/", "-")
    found, (digest, look) = load(stem.with_suffix(".json")), digests(made)
    if found is None or found.quick != quick or found.digest != digest or not _has_data(made, found):
        return None
    return found if found.look == look else _finish(stem, made, quick, found.seconds)


def _has_data(made: Experiment, found: Result) -> bool:
    """Whether it was made from the data that are to be had now; where there are none, what was made stands."""
    try:
        return made.source() == found.data
    except MissingData:
        return True


def load(path: Path) -> Result | None:
    """A result as it was written."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        claims = tuple(Claim(**one) for one in data.pop("claims"))
        return Result(**{**data, "claims": claims, "cached": True})
    except (OSError, ValueError, TypeError, KeyError):
        return None
