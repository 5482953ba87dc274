"""Sign-off pack: an audit in disclosure-control language, for officers who decide whether copies may leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato import pages
from sfumato.audit import messages
from sfumato.audit.messages import verdict
from sfumato.audit.result import Audit
from sfumato.audit.sections import MEANING, Section, all_sections, findings_section
from sfumato.audit.states import State


@dataclass(frozen=True)
class Provenance:
    """Where an audit was made, and of what: the facts that its readers check it by."""

    vault: str
    """The public key of the vault."""
    version: int
    policy: str
    """The digest of the policy."""
    scheme: str
    """The digest of the scheme."""
    ledger: str
    """The hash of the last entry of the ledger when the audit began."""
    entries: int
    actor: str
    made: str
    """The time, in UTC."""
    roles: tuple[tuple[str, str], ...]
    """What is done to each column."""


def sections(audit: Audit, made: Provenance) -> list[Section]:
    """The pack, in the order in which it is read."""
    parts = [
        _decision(audit),
        _facts(audit, made),
        findings_section(audit),
        _treatment(made),
        _attribute_risks(audit),
        *all_sections(audit),
        _limits(audit),
        *_annex(),
    ]
    return [part for part in parts if part is not None]


def html(audit: Audit, made: Provenance) -> str:
    """The pack as a page."""
    body = "\n".join(render(section) for section in sections(audit, made))
    return pages.page(
        title=f"Disclosure risk assessment of {audit.dataset}",
        subtitle=f"Version {made.version}, {made.made}, by {made.actor}",
        verdict=f"{audit.state.value.capitalize()}: {audit.state.sentence}",
        failed=not audit.passed,
        body=body,
        footer=f"Made by {audit.software}. The signature is in the file of the same name that ends in .sig.",
    )


def render(section: Section) -> str:
    """A section as HTML."""
    text = "".join(f"<p>{pages.escape(paragraph)}</p>" for paragraph in section.paragraphs)
    table = pages.table(section.head, section.rows, texts=section.texts) if section.rows else ""
    figure = f"<figure>{section.figure}</figure>" if section.figure else ""
    return f"<h2>{pages.escape(section.title)}</h2>{figure}{text}{table}"


_MEANINGS = {
    State.WITHIN_LIMITS: "No attack that was tried breaks a limit of the policy or reads a column, and recipients who "
    "combine their copies learn nothing beyond the best of them.",
    State.AT_RISK: "Recipients who combine their copies learn nothing beyond the best of them, but that one tells more "
    "than it should about the columns or records that are listed under Findings.",
    State.UNSOUND: "The copies do not have the noise that their manifests state, or their noise is independent. They "
    "must not be released.",
}


def _decision(audit: Audit) -> Section:
    paragraphs = (
        _MEANINGS[audit.state],
        verdict(audit),
        "A copy of a table was made for each recipient, perturbed as much as the recipient's trust demands; how each "
        "column is perturbed is under Treatment of the columns. Fidelity, between 0 and 1, is the share of a number's "
        "variance, in the values or scores that are given noise, that the best linear estimate recovers from a copy. "
        "This assessment attacks the copies with the methods that the software knows (`sfumato attack --list`), as "
        "the recipients could, alone and together.",
    )
    return Section("Decision in one paragraph", paragraphs)


def _facts(audit: Audit, made: Provenance) -> Section:
    copies = ", ".join(f"{copy.name} (fidelity {copy.fidelity:.4g})" for copy in audit.copies)
    rows = [
        ("Dataset", f"{audit.dataset}, version {made.version}", "what was assessed"),
        ("Records", f"{audit.rows:,}, of which {audit.audited_rows:,} attacked", "a random sample if not all"),
        ("Copies", copies, "who holds or may receive one"),
        ("Made by", f"{made.actor}, {made.made}", "the operator who ran the assessment"),
        ("Software", audit.software, "with the attacks of this version"),
        ("Policy", made.policy[:32], "digest of the owner's statement"),
        ("Scheme", made.scheme[:32], "digest of the noise that was fitted to this table"),
        ("Ledger", f"{made.entries:,} entries, {made.ledger[:32]}", "hash of the last one: what was released before"),
        ("Vault", made.vault[:32], "public key; its whole is in the signature"),
    ]
    return Section("What was assessed", (), MEANING, tuple(rows))


def _treatment(made: Provenance) -> Section:
    text = ("What is done to each column of the most trusted copy.",)
    return Section("Treatment of the columns", text, ("column", "treatment"), made.roles, texts=2)


def _attribute_risks(audit: Audit) -> Section | None:
    of_values = {risk.column: messages.share(risk.recovered) for risk in audit.value_risks}
    rows = [
        (
            *(risk.column, risk.attack, messages.share(risk.recovered_alone), messages.share(risk.recovered)),
            *((of_values.get(risk.column, "-"),) if of_values else ()),
        )
        for risk in audit.worst_columns
    ]
    text = (
        "What the best attack recovers of each column, from the best copy alone and from all copies together: the "
        "reduction of error against somebody without any copy. 0 % is nothing, 100 % is everything."
        + (f" {messages.OF_SCORES}" if of_values else ""),
    )
    head = ("column", "best attack", "best copy alone", "all copies", *(("of the values",) if of_values else ()))
    return Section("Attribute disclosure by the best attack", text, head, tuple(rows), texts=2) if rows else None


def _limits(audit: Audit) -> Section:
    skipped = ", ".join(one.attack for one in audit.all_copies.skipped)
    ran = ", ".join(score.attack for score in audit.all_copies.scores)
    only = f"ONLY SOME ATTACKS WERE RUN: {ran}. The others may do better." if audit.partial else ""
    left_out = f"Left out of this assessment: {', '.join(audit.without)}." if audit.without else ""
    paragraphs = (
        "Whether a person is in the table is not protected. Columns released unchanged, published identifiers, "
        "the number of records and the published models are known to every recipient. Attackers are assumed to know "
        "the method, the published models and some records, not the key.",
        "Not covered: attackers with methods that are not yet known; side information about the same persons that "
        "is nearly as good as the original; other releases of the same records that this vault did not make; theft of "
        "the key.",
        "Each record is taken for that of another person. Several records of one person (visits, purchases) have noise "
        "of their own, which can be averaged by those who recognise them: the attack repeated-records does so where "
        "their copies are alike, among the records that were assessed; those who know which records belong "
        "together do better.",
        messages.UNKNOWN_RULES,
        f"Not run, since they concern other kinds of perturbation or need what these copies lack: {skipped}."
        if skipped
        else "",
        only,
        left_out,
    )
    return Section("Limits, and threats not covered", tuple(text for text in paragraphs if text))


def _annex() -> Sequence[Section]:
    """Which part of the pack answers which requirement; whether it suffices is for the officer to decide."""
    gdpr = (
        ("GDPR Art. 25", "Treatment of the columns; levels by recipient", "data protection by design and by default"),
        ("GDPR Art. 32", "Vault, ledger, signature; soundness checks", "security of processing, tested regularly"),
        ("GDPR Art. 35", "The whole pack", "input to a data protection impact assessment, not the assessment itself"),
        ("WP216, singling out", "Risk of records; rare values; outliers", "can one record be isolated?"),
        ("WP216, linkability", "Linkability; record linkage", "can records of one person be linked?"),
        ("WP216, inference", "Attribute disclosure; attribute inference", "can an attribute be deduced?"),
    )
    hipaa = (
        (
            "HIPAA § 164.514(b)(1)",
            "Record linkage; unique records; method",
            "risk is very small, with the method shown",
        ),
        ("Safe projects", "Facts; approval in the ledger", "is this use of the data appropriate?"),
        ("Safe people", "Copies, by recipient and trust", "can the recipients be trusted to this extent?"),
        ("Safe settings", "not covered by this pack", "does access prevent unauthorised use?"),
        ("Safe data", "Risk sections", "is there a disclosure risk in the data themselves?"),
        ("Safe outputs", "not covered by this pack", "are statistical results non-disclosive?"),
    )
    head = ("requirement", "where", "question")
    return [
        Section("Annex A: GDPR and WP216", (), head, gdpr),
        Section("Annex B: HIPAA expert determination and the Five Safes", (), head, hipaa),
    ]
