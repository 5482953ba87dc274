"""What happened, in plain words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.ledger.chain import Entry
from sfumato.vault.datasets import is_drifting, left
from sfumato.vault.names import last_moment
from sfumato.vault.tracing import GUILT, Suspect, Trace

_MOSTLY = 0.2
"""A file with a larger share of the original's own numbers is said to hold them."""


def line(entry: Entry) -> str:
    """An entry as one line of the log."""
    return f"{entry.number:>7}  {entry.at[:16].replace('T', ' ')}  {entry.actor:<10} {sentence(entry)}"


def sentence(entry: Entry) -> str:
    """What an entry says."""
    try:
        return _SENTENCES[entry.action](entry)
    except (KeyError, TypeError, ValueError, AttributeError):
        return f"{entry.action}: this entry is not as the vault writes them; run `sfumato verify`."


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
    taken = [f"The risk of {role} was taken: {reason}." for role, reason in said.get("accepted", {}).items()]
    again = exposed(said)
    return " ".join([text, *taken, *([again] if again else [])])


def _began(entry: Entry) -> str:
    said = entry.body
    return (
        f"Began to send {entry.recipient} {entry.dataset} version {said['version']} at fidelity "
        f"{said['fidelity']:.6g}: {said['rows']:,} rows."
    )


def exposed(release: dict[str, Any]) -> str:
    """What a release adds to what its recipient was given before."""
    draws = {int(times): count for times, count in release["exposure"]["draws"].items()}
    if max(draws, default=1) < 2:
        return ""
    often = ", ".join(f"{count:,} records {times} times" for times, count in draws.items() if times > 1)
    found = release["exposure"]
    if found["error"] is None:
        return f"Drawn anew: {often}."
    return (
        f"Drawn anew: {often}; averaging leaves {found['error']:.1%} of the variance instead of {found['alone']:.1%}."
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
    "began": _began,
    "released": _released,
    "issued": lambda entry: f"Handed out the token {entry.dataset} to {entry.recipient or 'the owner'}{_note(entry)}.",
    "withdrawn": lambda entry: f"Withdrew the token {entry.dataset} of {entry.recipient or 'the owner'}.",
    "enrolled": lambda entry: f"Let {entry.recipient} sign in as an operator, with a new password.",
    "dismissed": lambda entry: f"Let the operator {entry.recipient} sign in no more.",
    "drafted": lambda entry: f"Drafted the survey {entry.dataset}: {entry.body['title']}.",
    "opened": lambda entry: f"Opened the survey {entry.dataset}.",
    "closed": lambda entry: f"Closed the survey {entry.dataset}: it takes no answers any more.",
    "relocked": lambda entry: f"Locked the vault with another {entry.body['opens']}.",
    "rekeyed": _rekeyed,
    "restored": lambda _: "Restored the vault from a backup: what came after that backup is forgotten.",
    "backed-up": lambda _: "Backed up the vault.",
}


def _note(entry: Entry) -> str:
    return f" ({entry.body['note']})" if entry.body["note"] else ""


def drift_warning(entry: Entry) -> list[str]:
    """What it means that a version varies more than the noise was shaped for."""
    if not is_drifting(entry.body):
        return []
    now, first = entry.body["stretch"], entry.body["first stretch"]
    said = ", ".join(
        f"{level} {left(fidelity, now):.1%} instead of {left(fidelity, first):.1%}"
        for level, fidelity in entry.body["levels"]
    )
    return [
        f"DRIFT: in some direction the numbers now vary {now / first:.3g} times as much as in the first version. What "
        f"is left to an attacker there, as a share of the variance: {said}. The first version's covariance stays in "
        "force. A new dataset would have noise of the new shape, but independent of that in earlier copies: for "
        "records that are in both, it can be averaged."
    ]


def rekey_cost(cost: list[dict[str, Any]], *, lost: bool) -> str:
    """What another master key costs."""
    out = [
        "Another master key makes noise that is independent of that in every copy given so far. Who holds an old copy "
        "and gets a new one can average: by Theorem 3 of li2012 the pooled error becomes 1/(1+Σ1/σi²)."
    ]
    out += [
        f"  {one['recipient']} has {one['dataset']} at {one['fidelity']:.4g}, a record drawn {one['draws']} times: "
        f"{_left(one['error'])} now, {_left(one['error after'])} after one more release"
        for one in cost[:20]
    ]
    out += [f"  and {len(cost) - 20:,} more"] if len(cost) > 20 else []
    out += [] if cost else ["  Nothing was released yet, so it costs nothing."]
    if lost:
        out.append("With the old key lost, nobody can check any more who wrote earlier entries, or trace old copies.")
    return "\n".join(out)


def _left(error: float | None) -> str:
    return "categories only" if error is None else f"{error:.1%} of the variance is left"


def trace_as_json(found: Trace) -> dict[str, Any]:
    """A trace for programs."""
    return {
        "rows": found.rows,
        "matched": found.matched,
        "matched by": found.how,
        "columns": list(found.columns),
        "share of original numbers": found.original,
        "releases not looked at": found.lost,
        "accused": list(dict.fromkeys(name for suspect in found.accused for name in suspect.recipients)),
        "suspects": [
            {
                "recipients": list(suspect.recipients),
                "version": suspect.version,
                "fidelity": suspect.fidelity,
                "z": suspect.score.z,
                "log10 likelihood ratio": suspect.score.log_ratio,
                "false accusation probability": suspect.false_accusation,
                "a copy that the ledger does not know": suspect.unknown,
                "accused": suspect.accused,
            }
            for suspect in found.suspects[:20]
        ],
    }


def trace_in_words(found: Trace, leaked: str) -> str:
    """A trace for people."""
    out = [_accusation(suspect, leaked) for suspect in found.accused]
    if any(suspect.unknown for suspect in found.suspects):
        out.append(
            f"{leaked} was made from a copy that the ledger does not know: one that was released without this vault, "
            "or after the backup that it was restored from. Nobody who is in the ledger is accused."
        )
    if found.original > _MOSTLY:
        out.append(f"{found.original:.1%} of its numbers are those of the original itself: the table has leaked.")
    if not out:
        out.append(
            f"No recipient's copy is recognised in {leaked}, and nobody is accused: none stands out so that fewer than "
            f"one innocent in {1 / GUILT:,.0f} files would."
        )
    if found.lost:
        out.append(f"{found.lost:,} releases were made with a key that is lost, and could not be looked at.")
    told = f"{found.matched:,} of {found.rows:,} rows were compared, told by their {found.how}" if found.how else ""
    return "\n".join([*out, f"{told}, in {', '.join(found.columns)}." if told else "No row or column of it is ours."])


def _accusation(suspect: Suspect, leaked: str) -> str:
    who = " or ".join(suspect.recipients)
    text = (
        f"{leaked} was made from the copy of {who} (version {suspect.version}, fidelity {suspect.fidelity:.6g}).\n"
        f"  likelihood ratio 10^{suspect.score.log_ratio:,.0f} against other origins (z = {suspect.score.z:.1f});\n"
        f"  an innocent would look so with probability {_tiny(suspect.false_accusation)}."
    )
    if len(suspect.recipients) > 1:
        text += "\n  They hold the same copy of these records, and cannot be told apart."
    return text


def _tiny(probability: float) -> str:
    return "below 1e-300" if probability < 1e-300 else f"{probability:.1e}"


ACTIONS = tuple(_SENTENCES)
"""What entries can be about."""
