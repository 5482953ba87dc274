"""What happened, in plain words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.ledger.chain import Entry
from sfumato.vault.datasets import is_drifting, left_by_drift
from sfumato.vault.names import last_moment
from sfumato.vault.tracing import GUILT, Trace


def line(entry: Entry) -> str:
    """An entry as one line of the log."""
    return f"{entry.number:>7}  {entry.at[:16].replace('T', ' ')}  {entry.actor:<10} {sentence(entry)}"


def sentence(entry: Entry) -> str:
    """What an entry says."""
    words = _SENTENCES.get(entry.action)
    return f"{entry.action} {entry.kind}." if words is None else words(entry)


def _added(entry: Entry) -> str:
    said = entry.body
    traced = ", leaks can be traced" if said["traced"] else ""
    levels = ", ".join(level for level, _ in said["levels"])
    return f"Added {entry.dataset}: {said['rows']:,} rows, levels {levels}{traced}."


def _updated(entry: Entry) -> str:
    found = entry.body["changes"]
    return (
        f"Updated {entry.dataset} to version {entry.body['version']}: {found['appended']:,} records appended, "
        f"{found['changed']:,} changed ({found['redrawn']:,} of them with fresh noise in their numbers), "
        f"{found['deleted']:,} deleted, {found['unchanged']:,} unchanged."
    )


def _granted(entry: Entry) -> str:
    said = entry.body
    level = said["level"] if isinstance(said["level"], str) else f"fidelity {said['level']:.6g}"
    parts = "" if said["columns"] is None else f", columns {', '.join(said['columns'])} only"
    parts += "" if said["where"] is None else f", rows with {said['where']} only"
    parts += "" if said["until"] is None else f", until {last_moment(said['until'])}"
    return f"Granted {entry.recipient} {entry.dataset} at {level}{parts}."


def _released(entry: Entry) -> str:
    said = entry.body
    level = said["level"] if isinstance(said["level"], str) else "fidelity"
    text = (
        f"Gave {entry.recipient} {entry.dataset} version {said['version']} at {level} ({said['fidelity']:.6g}): "
        f"{said['rows']:,} rows, digest {said['digest'][:12]}."
    )
    again = exposed(said)
    return f"{text} {again}" if again else text


def exposed(release: dict[str, Any]) -> str:
    """What a release adds to what its recipient was given before."""
    draws = {int(times): count for times, count in release["exposure"]["draws"].items()}
    if max(draws, default=1) < 2:
        return ""
    often = ", ".join(f"{count:,} records {times} times" for times, count in draws.items() if times > 1)
    return (
        f"Drawn anew: {often}; averaging leaves {release['exposure']['error']:.1%} of the variance instead of "
        f"{1 - release['fidelity']:.1%}."
    )


def _rekeyed(entry: Entry) -> str:
    lost = " The old key is lost." if entry.body["lost"] else ""
    return f"Took another master key, {entry.body['key']}: generation {entry.generation}.{lost}"


_SENTENCES: dict[str, Callable[[Entry], str]] = {
    "created": lambda entry: f"Made the vault, with the master key {entry.body['key']}.",
    "added": _added,
    "updated": _updated,
    "registered": lambda entry: f"Registered {entry.recipient}{_note(entry)}.",
    "disabled": lambda entry: f"Disabled {entry.recipient}: it receives nothing more.",
    "enabled": lambda entry: f"Enabled {entry.recipient} again.",
    "granted": _granted,
    "revoked": lambda entry: f"Revoked the grant of {entry.dataset} to {entry.recipient}.",
    "released": _released,
    "relocked": lambda entry: f"Locked the vault with another {entry.body['opens']}.",
    "rekeyed": _rekeyed,
    "backed-up": lambda _: "Backed up the vault.",
}


def _note(entry: Entry) -> str:
    return f" ({entry.body['note']})" if entry.body["note"] else ""


def drift_warning(entry: Entry) -> list[str]:
    """What it means that a version varies more than the noise was shaped for."""
    if not is_drifting(entry.body):
        return []
    drift = entry.body["drift"]
    left = ", ".join(
        f"{level} {left_by_drift(1 - fidelity, drift):.1%} instead of {1 - fidelity:.1%}"
        for level, fidelity in entry.body["levels"]
    )
    return [
        f"DRIFT: in some direction the numbers now vary {drift:.3g} times as much as the noise was shaped for. What is "
        f"left to an attacker there, as a share of the variance: {left}. The first version's covariance stays in "
        "force; if that is not enough, start a new dataset with this table."
    ]


def rekey_cost(cost: list[dict[str, Any]], *, lost: bool) -> str:
    """What another master key costs."""
    out = [
        "Another master key makes noise that is independent of that in every copy given so far. Who holds an old copy "
        "and gets a new one can average: by Theorem 3 of li2012 the pooled error becomes 1/(1+Σ1/σi²)."
    ]
    out += [
        f"  {one['recipient']} has {one['dataset']} at {one['fidelity']:.4g}: {one['error']:.1%} of the variance is "
        f"left now, {one['error after']:.1%} after one more release"
        for one in cost[:20]
    ]
    out += [f"  and {len(cost) - 20:,} more"] if len(cost) > 20 else []
    out += [] if cost else ["  Nothing was released yet, so it costs nothing."]
    out += ["With the old key lost, it can no longer be checked who wrote the earlier entries."] if lost else []
    return "\n".join(out)


def trace_as_json(found: Trace) -> dict[str, Any]:
    """A trace for programs."""
    return {
        "rows": found.rows,
        "matched": found.matched,
        "columns": list(found.columns),
        "share of original numbers": found.original,
        "accused": [name for suspect in found.accused for name in suspect.recipients],
        "suspects": [
            {
                "recipients": list(suspect.recipients),
                "version": suspect.version,
                "level": suspect.level,
                "z": suspect.score.z,
                "log10 likelihood ratio": suspect.score.log_ratio,
                "false accusation probability": suspect.false_accusation,
                "accused": suspect.accused,
            }
            for suspect in found.suspects[:20]
        ],
    }


def trace_in_words(found: Trace, leaked: str) -> str:
    """A trace for people."""
    if found.original > 0.5:
        return (
            f"{leaked} holds the original itself: {found.original:.1%} of its numbers are the table's own, not those "
            "of any copy. It was not made from what a recipient has."
        )
    seen = f"{found.matched:,} of {found.rows:,} rows are like ours, in {', '.join(found.columns) or 'no column'}."
    if not found.accused:
        return (
            f"{leaked} is nobody's copy, as far as can be told: {seen}\nNobody is accused: no recipient stands out so "
            f"that fewer than one innocent in {1 / GUILT:,.0f} files would."
        )
    out = []
    for suspect in found.accused:
        who = " or ".join(suspect.recipients)
        out.append(
            f"{leaked} was made from the copy of {who} (version {suspect.version}, level {suspect.level}).\n"
            f"  likelihood ratio 10^{suspect.score.log_ratio:,.0f} against other origins (z = {suspect.score.z:.1f});\n"
            f"  an innocent would look so with probability {_tiny(suspect.false_accusation)}."
        )
        if len(suspect.recipients) > 1:
            out.append("  They hold the same copy: add a dataset with --trace to tell recipients of one level apart.")
    return "\n".join([*out, seen])


def _tiny(probability: float) -> str:
    return "below 1e-300" if probability < 1e-300 else f"{probability:.1e}"
