"""Ledger entries, warnings and traces as sentences for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sfumato.ledger.chain import ERASED, UNREADABLE, Entry
from sfumato.ledger.ledger import ACCESS
from sfumato.vault.dataset_entries import OVERLAPS, first_variance_ratio, is_drifting, residual_error, variance_ratio
from sfumato.vault.names import format_end
from sfumato.vault.store import REPLACED

if TYPE_CHECKING:
    from sfumato.vault.tracing import Suspect, Trace

_MAX_ORIGINAL_SHARE = 0.2
"""A file with a larger share of the original's numbers is reported as a leak of the original table."""


def log_line(entry: Entry) -> str:
    """An entry as one line of the log; the numbers of accesses begin with an `a`."""
    number = f"a{entry.number}" if entry.kind == ACCESS and entry.action != ERASED else entry.number
    return f"{number:>7}  {entry.at[:16].replace('T', ' ')}  {entry.actor:<10} {sentence(entry)}"


def sentence(entry: Entry) -> str:
    """An entry as a sentence."""
    try:
        return _SENTENCES[entry.action](entry)
    except (KeyError, TypeError, ValueError, AttributeError):
        return f"{entry.action}: this entry was not written by a vault; run `sfumato verify`."


def _added(entry: Entry) -> str:
    body = entry.body
    traced = ", leaks can be traced" if body["traced"] else ""
    levels = ", ".join(level for level, _ in body["levels"])
    number = body["version"]
    again = f" anew, as version {number}" if number > 1 else ""
    return f"Added {entry.dataset}{again}: {body['rows']:,} rows, levels {levels}{traced}.{_overlaps(entry)}"


def _updated(entry: Entry) -> str:
    changes = entry.body["changes"]
    return (
        f"Updated {entry.dataset} to version {entry.body['version']}: {changes['appended']:,} records added, "
        f"{changes['changed']:,} changed ({changes['redrawn']:,} of them with new noise in their numbers), "
        f"{changes['deleted']:,} deleted, {changes['unchanged']:,} unchanged.{_overlaps(entry)}"
    )


def _overlaps(entry: Entry) -> str:
    """The datasets that share records with this one, and the reasons."""
    shared = entry.body.get(OVERLAPS, {})
    return "".join(
        f" Shares {one['share']:.0%} of records with {name}: {one['reason']}." for name, one in shared.items()
    )


def _granted(entry: Entry) -> str:
    body = entry.body
    level = body["level"] if isinstance(body["level"], str) else f"fidelity {body['level']:.6g}"
    parts = "" if body["columns"] is None else f", columns {', '.join(body['columns'])} only"
    parts += "" if body["where"] is None else f", rows with {body['where']} only"
    parts += "" if body["until"] is None else f", until {format_end(body['until'])}"
    return f"Granted {entry.dataset} to {entry.recipient} at {level}{parts}."


def _released(entry: Entry) -> str:
    body = entry.body
    named = isinstance(body["level"], str)
    level = f"{body['level']} ({body['fidelity']:.6g})" if named else f"fidelity {body['fidelity']:.6g}"
    text = (
        f"Released {entry.dataset} version {body['version']} to {entry.recipient} at {level}: "
        f"{body['rows']:,} rows, digest {body['digest'][:12]}."
    )
    accepted = [f"The risk of {role} was accepted: {reason}." for role, reason in body.get("accepted", {}).items()]
    repeated = exposure_text(body)
    return " ".join([text, *accepted, *([repeated] if repeated else [])])


def _began(entry: Entry) -> str:
    body = entry.body
    return (
        f"Started the download of {entry.dataset} version {body['version']} by {entry.recipient} at fidelity "
        f"{body['fidelity']:.6g}: {body['rows']:,} rows."
    )


def exposure_text(release: dict[str, Any]) -> str:
    """How many independent noise draws the records of a recipient's copies have received; empty if only one."""
    draws = {int(times): count for times, count in release["exposure"]["draws"].items()}
    if max(draws, default=1) < 2:
        return ""
    repeated = ", ".join(f"{count:,} records received {times}" for times, count in draws.items() if times > 1)
    text = f"Independent noise draws: {repeated}"
    exposure = release["exposure"]
    if exposure["error"] is None:
        return f"{text}."
    return f"{text}; averaging reduces the residual error from {exposure['alone']:.1%} to {exposure['error']:.1%}."


def _rekeyed(entry: Entry) -> str:
    lost = " The old key is lost." if entry.body["lost"] else ""
    signed = " The old key has signed the new public key." if entry.body.get("succession") else ""
    return f"Replaced the master key by {entry.body['key']}: generation {entry.generation}.{lost}{signed}"


def _delivered(entry: Entry) -> str:
    body = entry.body
    part = "" if body["bytes"] is None else f", bytes {body['bytes'][0]:,} to {body['bytes'][1]:,}"
    return (
        f"Delivered {entry.dataset} version {body['version']} at fidelity {body['fidelity']:.6g} to {entry.recipient} "
        f"as {body['format']}{part}{_from(entry)}."
    )


def _decided(entry: Entry, verb: str) -> str:
    body = entry.body
    role = f", {body['role']}" if body["role"] else ""
    reason = f": {body['reason']}" if body["reason"] else ""
    return f"{verb} {entry.dataset} version {body['version']} ({body['state']}) by {body['officer']}{role}{reason}."


def _retained(entry: Entry) -> str:
    versions, days = entry.body["versions"], entry.body["days"]
    what = f"earlier versions of {entry.dataset}" if entry.dataset else "records of the access log"
    limits = [f"the last {versions} versions"] * bool(versions) + [f"for {days} days"] * bool(days)
    return f"Keep {what}: {' and '.join(limits) or 'forever'}."


def _audited(entry: Entry) -> str:
    verdict = entry.body.get("state") or ("passed" if entry.body["passed"] else "failed")
    return f"Audited {entry.dataset} version {entry.body['version']}: {verdict}{_from(entry)}."


def _traced(entry: Entry) -> str:
    accused = ", ".join(entry.body["accused"]) or "nobody"
    return f"Traced a file to copies of {entry.dataset}: {accused} accused{_from(entry)}."


def _from(entry: Entry) -> str:
    """The address that an access came from."""
    return f", from {entry.body['address']}" if entry.body["address"] else ""


def _previewed(entry: Entry) -> str:
    """What was looked at; earlier versions showed original records always."""
    return "original records" if entry.body.get("originals", True) else "invented records in the shape"


def _erased(entry: Entry) -> str:
    if entry.kind == ACCESS:
        return f"Erased the access log before {entry.body['before'][:10]}."
    if entry.kind == "recipient":
        return f"Erased the recipient {entry.recipient}: its grants and tokens have ended."
    if entry.kind == "version":
        return f"Erased version {entry.body['version']} of {entry.dataset}: nobody can read it any more."
    return f"Erased the {entry.kind} {entry.dataset}: nobody can read its content any more."


def _enrolled(entry: Entry) -> str:
    role = entry.body.get("role", "administrator")  # as all operators of earlier versions were
    through = f", who is {entry.body['identity']} at the identity provider" if entry.body.get("identity") else ""
    if "generation" in entry.body:
        return f"Changed the operator {entry.recipient}: {role}{through}."
    password = " with a new password" if entry.body.get("hash", "elsewhere") else ""
    return f"Registered the operator {entry.recipient}{password}, as {role}{through}."


_SENTENCES: dict[str, Callable[[Entry], str]] = {
    "created": lambda entry: f"Created the vault with the master key {entry.body['key']}.",
    "added": _added,
    "updated": _updated,
    "registered": lambda entry: f"Registered {entry.recipient}{_note(entry)}.",
    "disabled": lambda entry: f"Disabled {entry.recipient}: no more copies are released to it.",
    "enabled": lambda entry: f"Enabled {entry.recipient} again.",
    "granted": _granted,
    "revoked": lambda entry: f"Revoked the grant of {entry.dataset} to {entry.recipient}.",
    "reported": lambda entry: (
        f"Reported on {entry.dataset} version {entry.body['version']}: {entry.body['state']}, "
        f"{entry.body['findings']} findings, digest {entry.body['digest'][:12]}."
    ),
    "approved": lambda entry: _decided(entry, "Approved"),
    "rejected": lambda entry: _decided(entry, "Rejected"),
    "scheduled": lambda entry: (
        f"Scheduled {entry.dataset} for {entry.recipient}, every {entry.body['every']}, to {entry.body['to']}"
        f"{', new rows only' if entry.body['new_rows'] else ''}."
    ),
    "unscheduled": lambda entry: f"Ended the schedule of {entry.dataset} for {entry.recipient}.",
    "ran": lambda entry: f"Released {entry.dataset} version {entry.body['version']} to {entry.recipient} as scheduled.",
    "streamed": lambda entry: (
        f"Processed window {entry.body['window']} of the stream of {entry.dataset}: {entry.body['rows']:,} rows."
    ),
    "retained": _retained,
    "began": _began,
    "released": _released,
    "issued": lambda entry: (
        f"Issued the {_credential(entry)} {entry.dataset} to {entry.recipient or 'the owner'}{_note(entry)}."
    ),
    "redeemed": lambda entry: f"{entry.recipient} signed in with the link {entry.dataset}, which opens only once.",
    "withdrawn": lambda entry: (
        f"Withdrew the {_credential(entry)} {entry.dataset} of {entry.recipient or 'the owner'}."
    ),
    "enrolled": _enrolled,
    "dismissed": lambda entry: f"Removed the operator {entry.recipient}.",
    "drafted": lambda entry: f"Drafted the survey {entry.dataset}: {entry.body['title']}.",
    "opened": lambda entry: f"Opened the survey {entry.dataset}.",
    "closed": lambda entry: f"Closed the survey {entry.dataset}: it accepts no more answers.",
    ERASED: _erased,
    "delivered": _delivered,
    "answered": lambda entry: (
        f"Answered a question about {entry.dataset} version {entry.body['version']} from the copy of "
        f"{entry.recipient}{_from(entry)}."
    ),
    "profiled": lambda entry: (
        f"Profiled {entry.dataset} version {entry.body['version']} from the copy of {entry.recipient}{_from(entry)}."
    ),
    "audited": _audited,
    "traced": _traced,
    "measured": lambda entry: f"Attacked copies of a sample of original records of {entry.dataset}{_from(entry)}.",
    "previewed": lambda entry: f"Looked at {_previewed(entry)} of {entry.dataset} and at their copies{_from(entry)}.",
    "exported": lambda entry: f"Exported the answers to {entry.dataset}{_from(entry)}.",
    "used": lambda entry: f"Used the service{_from(entry)}.",
    "relocked": lambda entry: f"Locked the vault with another {entry.body['opens']}.",
    "rekeyed": _rekeyed,
    "restored": lambda _: "Restored the vault from a backup: later entries are lost.",
    REPLACED: lambda entry: (
        f"Encrypted the {len({one['name'] for one in entry.body.values()})} files of "
        f"{entry.dataset} with the current key."
    ),
    "backed-up": lambda _: "Backed up the vault.",
    UNREADABLE: lambda _: "Cannot be read: its key is lost.",
}


def _credential(entry: Entry) -> str:
    return "link" if entry.body["scopes"] == ["link"] else "token"


def _note(entry: Entry) -> str:
    return f" ({entry.body['note']})" if entry.body["note"] else ""


def version_warnings(entry: Entry) -> list[str]:
    """What a new version means for the protection of its records; empty if nothing."""
    return [*_repeated_noise(entry), *_drift(entry)]


def _repeated_noise(entry: Entry) -> list[str]:
    """A warning if records have another noise in numbers that did not change."""
    redrawn = entry.body.get("changes", {}).get("redrawn", 0)
    if not redrawn:
        return []
    errors = ", ".join(
        f"{level} {residual_error(fidelity, 2):.1%} instead of {residual_error(fidelity, 1):.1%}"
        for level, fidelity in entry.body["levels"]
    )
    return [
        f"SECOND NOISE: {redrawn:,} records have new noise also in numbers that did not change. Who has an earlier "
        f"copy and receives this version can average the two there; the residual error is then {errors}. A third "
        "version that changes them lowers it further; `sfumato status` has the figure of each recipient."
    ]


def _drift(entry: Entry) -> list[str]:
    """A warning if a version varies more than the noise was fitted to."""
    if not is_drifting(entry.body):
        return []
    now, first = variance_ratio(entry.body), first_variance_ratio(entry.body)
    errors = ", ".join(
        f"{level} {residual_error(fidelity, now):.1%} instead of {residual_error(fidelity, first):.1%}"
        for level, fidelity in entry.body["levels"]
    )
    return [
        f"DRIFT: in some direction the variance of the numbers is now {now / first:.3g} times that of the first "
        f"version. The residual error there, as a share of the variance: {errors}. The noise keeps the covariance of "
        "the first version. A new dataset would have noise of the new covariance, but independent of that in earlier "
        "copies: for records that are in both, it can be averaged out."
    ]


def rekey_cost_text(cost: list[dict[str, Any]], *, lost: bool) -> str:
    """The disclosure risk of a new master key, as text."""
    if lost:
        twice = ", ".join(  # half the noise: two copies of equal fidelity, averaged
            f"at fidelity {f} it leaves {residual_error(f, 2):.0%} of variance instead of {residual_error(f, 1):.0%}"
            for f in (0.5, 0.9)
        )
        return (
            "Since the old key is lost, nobody can read the entries of the ledger any more, nor the stored tables, nor "
            "trace old copies. After a new key, register recipients again (`sfumato recipient`), and add each table "
            "again with the same policy (`sfumato add`).\n"
            "New copies have noise that is independent of that in all earlier ones. A recipient with an old and a new "
            "copy of the same fidelity can average them before a linear attack: "
            f"{twice}. Who holds which copy, you have to know."
        )
    out = [
        "A new master key gives noise that is independent of that in all earlier copies. A recipient with an old and a "
        "new copy can average them: by Theorem 3 of li2012 the residual error of the best linear attack falls to "
        "1/(1+Σ1/σi²) of the variance."
    ]
    out += [
        f"  {one['recipient']} has {one['dataset']} at fidelity {one['fidelity']:.4g}, with up to {one['draws']} "
        f"independent noise draws per record: {_error(one['residual error'])} now, "
        f"{_error(one['residual error after'])} after one more release"
        for one in cost[:20]
    ]
    out += [f"  and {len(cost) - 20:,} more"] if len(cost) > 20 else []
    out += [] if cost else ["  Nothing was released yet, so there is no added risk."]
    return "\n".join(out)


def _error(error: float | None) -> str:
    return "categories only" if error is None else f"residual error {error:.1%}"


def trace_text(found: Trace, leaked: str) -> str:
    """A trace as text for people; `leaked` is the name of the file."""
    from sfumato.vault.tracing import MAX_FALSE_ACCUSATION

    out = [_accusation(suspect, leaked) for suspect in found.accused]
    if any(suspect.unrecorded for suspect in found.suspects):
        out.append(
            f"{leaked} was made from a copy that is not in the ledger: one that was released without this vault, or "
            "after the backup that it was restored from. No recipient in the ledger is accused."
        )
    if found.original_share > _MAX_ORIGINAL_SHARE:
        out.append(f"{found.original_share:.1%} of its numbers equal the original: the original table has leaked.")
    if not out:
        out.append(
            f"{leaked} was not traced to any recipient's copy, and nobody is accused: no score is significant at the "
            f"false-alarm rate {MAX_FALSE_ACCUSATION:.0e} per file."
        )
    if found.untraceable:
        out.append(f"{found.untraceable:,} releases were made with a key that is lost, and could not be compared.")
    if found.matched_by:
        out.append(
            f"{found.matched:,} of {found.rows:,} rows were compared, matched by {found.matched_by}, in the columns "
            f"{', '.join(found.columns)}."
        )
    else:
        out.append("No row or column of the file matches the dataset.")
    return "\n".join(out)


def trace_verdict(found: Trace) -> list[str]:
    """What a trace found, the sources of the file first; empty if nothing."""
    said = [f"made from the copy of {' or '.join(suspect.recipients)}" for suspect in found.accused]
    if any(suspect.unrecorded for suspect in found.suspects):
        said.append("made from a copy that is not in the ledger, so that nobody is accused of it")
    if found.original_share > _MAX_ORIGINAL_SHARE:
        said.append(f"the original table has leaked: {found.original_share:.1%} of the numbers equal it")
    return said


def _accusation(suspect: Suspect, leaked: str) -> str:
    who = " or ".join(suspect.recipients)
    text = (
        f"{leaked} was made from the copy of {who} (version {suspect.version}, fidelity {suspect.fidelity:.6g}).\n"
        f"  Likelihood ratio 10^{suspect.score.log_ratio:,.0f} against other sources (z = {suspect.score.z:.1f});\n"
        f"  probability of a false accusation {_tiny(suspect.false_accusation)}."
    )
    if len(suspect.recipients) > 1:
        text += "\n  They hold the same copy of these records, and cannot be distinguished."
    return text


def _tiny(probability: float) -> str:
    return "below 1e-300" if probability < 1e-300 else f"{probability:.1e}"


ACTIONS = tuple(_SENTENCES)
"""The actions that entries record."""
