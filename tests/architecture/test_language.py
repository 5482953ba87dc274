"""The words of the field: private words that were replaced must not come back, in names, texts or documents.

As a script it lists what it finds in some paths: `python tests/architecture/test_language.py src/sfumato/audit`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".md", ".html", ".js", ".mjs", ".ts", ".toml", ".css", ".yml", ".cff"}
PATHS = ("src", "docs", "benchmarks", "tests", "README.md", "CONTRIBUTING.md", "SECURITY.md")

UNIT = (
    "row|cell|minute|second|hour|day|file|column|record|batch|level|format|event|gap|part|revision|point|question|"
    "person|group|subject|value|draw|version|copy|letter|screen|worker|key|recipient|step"
)
RATE = (
    "one|word|words|bits?|rows?|bytes?|draws?|lines?|failures?|files?|attacks?|encoder|reader|estimator|"
    "values?|bridge|steps?|letter|point|times?|nanoseconds?|ns|requests?|tries|cells?|blocks?|entries"
)

REPLACED = {
    r"turned|turning(?! point)": "rotated, mapped; became",
    r"motions?": "linear map",
    r"humps?": "mixture components",
    r"plateaus?": "uniform density",
    r"un-?blur\w*|blur\w*": "perturb, perturbation, noise; deconvolution",
    r"laws?": "distribution",
    r"chances?": "probability",
    r"deals?|dealt|dealing": "split, partition",
    r"foretold|foretell\w*": "held-out log-likelihood",
    r"telling|tells? apart|told apart": "non-dominated; distinguish",
    r"prices?": "penalty",
    r"sights?|lessons?": "class counts; training set",
    r"stretch\w*": "variance ratio, largest generalised eigenvalue",
    r"lots": "sort keys",
    r"exhibits?|dockets?": "evidence from a copy; audit input",
    r"desks?|lent|lends?|lending": "key broker; shared",
    r"intake|makers?": "queue; worker pool",
    r"marks?|marked|unmarked": "fingerprint",
    r"places?|placed": "URI, row index, index, slot: whichever it is",
    r"whoever|whomever|thereof|wherein|therein": "plain modern English",
    r"pooling is useless|gains? nothing from pooling": "collusion-resistant: combining copies adds no information",
    r"errors? left|left to all together": "residual error",
    r"guessed right": "accuracy",
    r"belief rises": "posterior probability",
    r"stands? out|standing out": "outlier; at risk of singling out",
    r"shown as (?:it|they) (?:is|are)": "released unchanged",
    r"tell about each other|tells about": "correlated",
    rf"(?:{RATE}) an? (?:{UNIT})": "per",
}
"""What the field does not say, and what it says."""

ALLOWED = {
    r"in place|take[sn]? place|took place|in the first place|place holder|placeholder|decimal places?": "idioms",
    r"law of large numbers|laws? and regulations?": "names of their own",
    r"blurred on purpose": "the one image of the README",
    r"marks=|hypothesis|benchmark\w*|pytest\.mark|mark\.\w+|remark\w*|markdown|MarkDecorator|markers?": "other words",
    r"price(?:=|:|\"| of a house)": "a column of an example",
    r"the chance for both|the highest chance|exhibits a": "words of the papers",
    r"\"(?:first )?stretch\"|\"marks?\"": "keys of ledger entries, which older vaults hold",
}
"""Where such a word is meant."""

EXEMPT = {
    "tests/architecture/test_language.py",
    "CHANGELOG.md",  # it lists what was renamed
    "src/sfumato/release/manifest_format_1.py",  # it reads what version 0.1 wrote
    "tests/compatibility/make_v0_1.py",
    "tests/compatibility/test_v0_1.py",
}

_WORDS = [(re.compile(rf"(?<![A-Za-z])(?:{word})(?![A-Za-z])", re.IGNORECASE), say) for word, say in REPLACED.items()]
_MEANT = re.compile("|".join(f"(?:{word})" for word in ALLOWED), re.IGNORECASE)


def files(paths: tuple[str, ...] = PATHS) -> Iterator[Path]:
    for name in paths:
        path = Path(name) if Path(name).is_absolute() else ROOT / name
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in found:
            hidden = any(part.startswith((".", "_build", "v0.1")) or part == "_static" for part in file.parts[-6:])
            if file.is_file() and file.suffix in SUFFIXES and not hidden and str(file.relative_to(ROOT)) not in EXEMPT:
                yield file


def found_in(text: str) -> Iterator[tuple[int, str, str]]:
    """The replaced words of a text: line, word and what to say instead."""
    for number, line in enumerate(text.splitlines(), 1):
        rest = _MEANT.sub(lambda match: " " * len(match[0]), line)
        for word, say in _WORDS:
            for match in word.finditer(rest):
                yield number, match[0], say


def all_found(paths: tuple[str, ...] = PATHS) -> list[str]:
    return [
        f"{file.relative_to(ROOT)}:{number}: {word!r}; say: {say}"
        for file in files(paths)
        for number, word, say in found_in(file.read_text(encoding="utf-8"))
    ]


def test_no_replaced_word_comes_back() -> None:
    found = all_found()
    assert not found, f"{len(found)} words of a private language:\n" + "\n".join(found[:40])


@pytest.mark.parametrize(
    "text", ["def turned(rows): ...", "a chance of 5 %", "one file a day", "unblurred_rows", "# places"]
)
def test_a_planted_word_is_found(text: str) -> None:
    assert list(found_in(text))


@pytest.mark.parametrize("text", ["it happens in place", "return rotated", "@pytest.mark.slow", "the probability"])
def test_plain_words_are_not(text: str) -> None:
    assert not list(found_in(text))


if __name__ == "__main__":
    print("\n".join(all_found(tuple(sys.argv[1:]) or PATHS)))
