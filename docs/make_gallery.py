"""Writes docs/gallery.md and its pictures from a full run: `sfumato reproduce`, then `python docs/make_gallery.py`."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from sfumato.experiments import AGREES, CORRECTED, EXPERIMENTS, FAILS, PAPERS
from sfumato.experiments._runner import names, stored

HERE = Path(__file__).parent
PAGE, PICTURES = HERE / "gallery.md", HERE / "_static" / "gallery"
_LEADS = {
    "beyond": "What Sfumato claims beyond the papers, each with its figure.",
}
_MARKS = {AGREES: "✓ agrees", CORRECTED: "✎ agrees after correction", FAILS: "✗ **does not reproduce**"}


def main(folder: Path) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    results = []
    for name in names():
        found = stored(folder, EXPERIMENTS[name.replace("/", "-")](), quick=False)
        if found is None:
            raise SystemExit(f"{name} is not in {folder}, at full size and by this code; run `sfumato reproduce` first")
        shutil.copy(folder / f"{found.stem}.png", PICTURES / f"{found.stem}.png")
        results.append(found)
    PAGE.write_text(page(results), encoding="utf-8")
    verdicts = {one.name: {c.says: c.verdict for c in one.claims} for one in results}
    (PICTURES / "verdicts.json").write_text(json.dumps(verdicts, indent=1, ensure_ascii=False), encoding="utf-8")


def page(results: list[Any]) -> str:
    counts = Counter(claim.verdict for one in results for claim in one.claims)
    minutes = sum(one.seconds for one in results) / 60
    parts = [
        "# Gallery: the papers' figures, redrawn\n",
        "Made by `sfumato reproduce` at full size and `python docs/make_gallery.py`; do not edit. "
        f"{len(results)} figures and tables, {sum(counts.values())} claims: {counts[AGREES]} agree, "
        f"{counts[CORRECTED]} agree after a correction of the paper ([errata](errata.md)), "
        f"{counts[FAILS]} do not reproduce. "
        f"It took {minutes:.0f} minutes on two cores. The papers were at hand as texts, without pictures and page "
        "numbers: what is held against our figures is what the texts say; series are named as there.\n",
    ]
    for paper, title in PAPERS.items():
        parts.append(f"## {title}\n")
        parts += [_LEADS[paper] + "\n"] if paper in _LEADS else []
        parts += [_figure(one) for one in results if one.paper == paper]
    return "\n".join(parts)


def _figure(found: Any) -> str:
    lines = [
        f"### {found.title}\n",
        f"![{found.title}](_static/gallery/{found.stem}.png)\n",
        f"{found.about} Data: {found.data}. `sfumato reproduce {found.name}`, seed {found.seed}, "
        f"{found.seconds:.0f} s.\n",
    ]
    if not found.claims:
        return "\n".join([*lines, "No claim is made of it.\n"])
    lines += ["| verdict | the paper says | must hold | found |", "|---|---|---|---|"]
    for claim in found.claims:
        erratum = f" ([{claim.erratum}](errata.md#{claim.erratum.lower()}))" if claim.erratum else ""
        cells = (f"{_MARKS[claim.verdict]}{erratum}", f"{claim.says} ({claim.where})", claim.must, claim.found)
        lines.append("| " + " | ".join(_plain(cell) if i else cell for i, cell in enumerate(cells)) + " |")
    return "\n".join([*lines, ""])


def _plain(text: str) -> str:
    return re.sub(r"([|*_])", r"\\\1", text)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "sfumato-reproduced"))
