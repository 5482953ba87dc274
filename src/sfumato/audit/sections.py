"""Sections of a report: findings, the field's measures, utility and privacy budget, each figure with its meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from sfumato.audit.field_measures import RecordRisks
from sfumato.audit.measures.anonymity import Anonymity
from sfumato.audit.measures.excess_risk import ExcessRisk
from sfumato.audit.result import Audit
from sfumato.audit.risk_utility_page import HEAD, figure, meaning, rows
from sfumato.errors import install_hint

_MOST_ROWS = 40
"""The most rows of a table in a report."""

_MOST_GROUPS = 8
"""The most numbers whose means by group are shown."""


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs, and a table with a header; the first `texts` of its columns hold text."""

    title: str
    paragraphs: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    texts: int = 3
    figure: str = ""
    """A picture as SVG, which pages show and print does not."""


MEANING = ("measure", "result", "meaning")


def findings_section(audit: Audit) -> Section | None:
    """All that is bad, with what to do."""
    if not audit.findings:
        return None
    rows = [(one.subject, one.fault, one.advice) for one in audit.findings[:_MOST_ROWS]]
    more = len(audit.findings) - len(rows)
    text = (f"And {more} more, in the JSON of this audit.",) if more > 0 else ()
    return Section("Findings, and what to do", text, ("column", "finding", "advice"), tuple(rows))


def record_sections(audit: Audit) -> list[Section]:
    """The risk of records: by the best copy as it stands, by all copies, and of rare values and unchanged columns."""
    if audit.measures is None:
        return []
    found = [_record_section(one) for one in audit.measures.records]
    for one in audit.measures.records:
        if one.inference:
            knows = "Somebody who knows all other attributes of a person"
            found.append(_inference_section(f"Attribute inference: {one.adversary}", knows, one.inference))
        if one.quasi_inference:
            knows = f"Somebody who knows {', '.join(one.quasi)} of a person, as from a public table,"
            title = f"Attribute inference by quasi-identifiers: {one.adversary}"
            found.append(_inference_section(title, knows, one.quasi_inference))
    if audit.measures.rare_values:
        found.append(_rare_section(audit))
    if audit.measures.dissimilarity is not None:
        meaning = "of noise and data: 0 if the noise has the shape of the data, so that nothing filters it out"
        row = ("Correlation dissimilarity", f"{audit.measures.dissimilarity:.4f}", f"{meaning} (huang2005)")
        found.append(Section("Shape of the noise", (), MEANING, (row,)))
    if audit.measures.anonymity is not None:
        found.append(_anonymity_section(audit.measures.anonymity, audit.audited_rows))
    return found


def _record_section(risks: RecordRisks) -> Section:
    control = f"{risks.targets:,} records that were not released"
    text = (
        f"What is known of {risks.targets:,} released records among {risks.candidates:,} from {risks.adversary}, "
        f"beside the same attack on {control}. Excess is what remains when the success on those is taken off: the part "
        "of the success that is due to a record being in the table (as in Anonymeter).",
    )
    rows = [
        _excess(f"Singling out, {one.name}", one, "descriptions that fit one record of the copy fit one person")
        for one in risks.singling_out
    ]
    rows.append(
        _excess("Linkability", risks.linkability, "two halves of a person's attributes lead to the same record")
    )
    rows.append(
        (
            "Record linkage, by distance",
            _interval(risks.linkage.estimate, risks.linkage.low, risks.linkage.high),
            "share of persons, all of whose values are known, whose nearest record in the copy is their own",
        )
    )
    if risks.mahalanobis_linkage is not None:
        one = risks.mahalanobis_linkage
        meaning = "the same by the Mahalanobis distance of the published noise, the strongest known linkage"
        rows.append(("Record linkage, by the noise", _interval(one.estimate, one.low, one.high), meaning))
    if risks.quasi_linkage is not None:
        one = risks.quasi_linkage
        meaning = f"the same by somebody who knows {', '.join(risks.quasi)} alone, as from a public table"
        rows.append(("Record linkage, by quasi-identifiers", _interval(one.estimate, one.low, one.high), meaning))
    auc = risks.membership.auc
    rows.append(
        (
            "Membership inference, AUC",
            f"{auc.estimate:.2f} ({auc.low:.2f} to {auc.high:.2f})",
            "probability that a person in the table looks nearer to the copy than one who is not; 0.50 is guessing",
        )
    )
    if not math.isnan(risks.interval_disclosure):
        meaning = "share of records all of whose numbers lie within 5 % of a standard deviation of the copy (dRisk)"
        rows.append(("Interval disclosure", f"{risks.interval_disclosure:.1%}", meaning))
    if risks.robust_distance is not None:
        meaning = "share of records with a number that is nearly unchanged and with no other record nearby (dRiskRMD)"
        rows.append(("Robust distance risk", f"{risks.robust_distance.near_and_alone:.1%}", meaning))
    return Section(f"Risk of records: {risks.adversary}", text, MEANING, tuple(rows))


def _excess(name: str, one: ExcessRisk, meaning: str) -> tuple[str, str, str]:
    excess = _interval(one.excess.estimate, one.excess.low, one.excess.high)
    result = f"excess {excess}; success {one.attack.estimate:.1%}, control {one.control.estimate:.1%}"
    note = "" if one.is_measurable else " (no better than guessing)"
    return name, result, f"{meaning}{note}"


def _interval(estimate: float, low: float, high: float) -> str:
    return f"{estimate:.1%} ({low:.1%} to {high:.1%})"


def _inference_section(title: str, knows: str, risks: Sequence[ExcessRisk]) -> Section:
    ordered = sorted(risks, key=lambda one: -one.excess.estimate)[:_MOST_ROWS]
    rows = [
        (
            one.name,
            _interval(one.excess.estimate, one.excess.low, one.excess.high),
            f"{one.attack.estimate:.1%}",
            f"{one.control.estimate:.1%}",
            f"{one.baseline.estimate:.1%}",
        )
        for one in ordered
    ]
    text = (
        f"{knows} reads one off the nearest record. A category counts as inferred if it is right, a number if it is "
        "within 5 %.",
    )
    head = ("column", "excess", "success", "control", "any record")
    return Section(title, text, head, tuple(rows), texts=1)


def _rare_section(audit: Audit) -> Section:
    rows = [
        (one.column, one.values, f"{one.share:.2%}", f"{one.named:,}", f"{one.precision:.0%}", f"{one.found:.0%}")
        for one in (audit.measures.rare_values if audit.measures else ())[:_MOST_ROWS]
    ]
    text = (
        "How many records the best attack can name, of which at least 80 % (with 95 % confidence) have a rare or "
        "extreme value. Overall accuracy hides these.",
    )
    head = ("column", "value", "records with it", "named", "rightly", "of all with it")
    return Section("Rare and extreme values that can be named", text, head, tuple(rows), texts=2)


def _anonymity_section(found: Anonymity, rows: int) -> Section:
    table = [
        ("k-anonymity", f"k = {found.k}", "the smallest number of records that share all values of these columns"),
        ("Unique records", f"{found.uniques:,} of {rows:,}", "records that these columns alone single out"),
        *(
            (f"Violate {k}-anonymity", f"{share:.1%}", f"share of records that fewer than {k} share these values with")
            for k, share in found.below.items()
            if k > 2
        ),
        (
            "Unique in the population",
            f"{found.population_uniques:.1%}",
            f"estimated share of records that are unique among all {found.population:,} of the table (Pitman's model)",
        ),
    ]
    for one in sorted(found.attributes, key=lambda one: (one.diversity, -one.closeness))[:10]:
        result = f"l = {one.diversity}, t = {one.closeness:.2f}"
        meaning = "fewest distinct values, and largest distance of distributions, among records that share all values"
        table.append((f"l-diversity, t-closeness of {one.column}", result, meaning))
    names = ", ".join(found.columns)
    text = (f"Columns released unchanged may be quasi-identifiers: {names}. Sensitive attributes are perturbed.",)
    return Section("Columns released unchanged", text, MEANING, tuple(table))


def utility_section(audit: Audit) -> Section | None:
    """What the best copy as it stands preserves."""
    found = audit.utility
    if found is None:
        return None
    rows = [
        ("Numbers moved (IL1s)", _number(found.il1s), "mean distance from the original, in √2 standard deviations"),
        ("Eigenvalues", _share(found.eigenvalues), "mean relative change of the eigenvalues of the correlations"),
        ("Overlap of intervals", _share(found.overlap), "of the 95 % confidence intervals of means; 100 % is equal"),
        ("Largest change of a mean", _share(found.largest_mean_error), "in standard deviations of its column"),
        ("Propensity (pMSE)", _share(found.propensity), "how well copy and original can be distinguished; 0 % is best"),
    ]
    for group in found.group_changes[:_MOST_GROUPS]:
        meaning = f"of a group by {group.by}, where it moved most, in standard deviations of {group.column}"
        rows.append((f"Mean of {group.column}", f"{group.moved:+.2f}", meaning))
    for one in found.models:
        result = f"{one.copy:.3f}; original {one.original:.3f}, no model {one.baseline:.3f}"
        meaning = f"{one.measure} on records not released, by trees trained on the copy as it stands"
        rows.append((f"Model of {one.column}", result, meaning))
    text = (
        "Of the best copy as it stands. `sfumato mine` takes the published noise into account: its answers have "
        "intervals that allow for what the copy does not show.",
    )
    return Section("Utility", text, MEANING, tuple(rows))


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1%}"


def budget_section(audit: Audit) -> Section | None:
    """The differential privacy of a record's values."""
    budget = audit.budget
    if budget is None:
        reason = f"Not computed, since dp-accounting is not installed: {install_hint('dp')}."
        return None if find_spec("dp_accounting") else Section("Privacy budget", (reason,))
    rows = [
        (" x ".join(one.columns), _bound(one.rho), _bound(one.epsilon))
        for one in sorted(budget.attributes, key=lambda one: -one.epsilon)[:_MOST_ROWS]
    ]
    rows.append(("whole record", _bound(budget.rho), _bound(budget.epsilon)))
    text = (
        "Local differential privacy of the best copy: by how much, at most, what is released of one record depends on "
        f"its value. ρ is that of zero-concentrated differential privacy; ε holds with δ = {budget.delta:g} for "
        "numbers and with δ = 0 for single categories. A number that is not clipped has no bound. Copies on one path "
        f"compose to the best of them; these copies have {_times(budget.versions)}.",
    )
    return Section("Privacy budget", text, ("attribute", "ρ", "ε"), tuple(rows), texts=1)


def _times(draws: int) -> str:
    return "one draw of noise per record" if draws == 1 else f"{draws} independent draws of noise per record"


def _bound(value: float | None) -> str:
    if value is None:
        return "-"
    return "no bound" if math.isinf(value) else f"{value:.3g}"


def risk_utility_section(audit: Audit) -> Section | None:
    """What each level would risk and preserve."""
    if not audit.risk_utility:
        return None
    levels = sorted({copy.fidelity for copy in audit.copies}, reverse=True)
    points = audit.risk_utility
    return Section(
        "Risk and utility of levels", (meaning(levels),), HEAD, tuple(rows(points)), 4, figure(points, levels)
    )


def all_sections(audit: Audit) -> Sequence[Section]:
    """The sections that every report has, in order."""
    sections = [*record_sections(audit), utility_section(audit), risk_utility_section(audit), budget_section(audit)]
    return [section for section in sections if section is not None]
