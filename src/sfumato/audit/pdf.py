"""Sign-off packs as PDF, with ReportLab."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from sfumato.audit.result import Audit
from sfumato.audit.sections import Section
from sfumato.audit.sign_off import Provenance, sections
from sfumato.errors import AttackError, install_hint

_WIDTH = 170
"""The width of the text, in millimetres."""
_CELL = 400
"""The most characters of a cell, which must fit a page."""


def require_pdf() -> None:
    """Refuse a PDF before any work is done, where the library for it is not installed."""
    try:
        import reportlab  # noqa: F401, PLC0415 - optional
    except ImportError:
        raise AttackError(f"a report as PDF needs reportlab; {install_hint('pdf')}, or write an .html file") from None


def pdf(audit: Audit, made: Provenance) -> bytes:
    """The pack as a PDF, without compression dates: the same audit gives the same bytes."""
    require_pdf()
    from reportlab.lib.pagesizes import A4  # noqa: PLC0415 - optional
    from reportlab.lib.styles import getSampleStyleSheet  # noqa: PLC0415
    from reportlab.lib.units import mm  # noqa: PLC0415
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer  # noqa: PLC0415

    styles, out = getSampleStyleSheet(), io.BytesIO()
    styles["Heading2"].keepWithNext = 1
    title = f"Disclosure risk assessment of {audit.dataset}"
    document = SimpleDocTemplate(
        out, pagesize=A4, leftMargin=20 * mm, rightMargin=20 * mm, title=title, author=audit.software, invariant=1
    )
    flow: list[Any] = [
        Paragraph(escape(title), styles["Title"]),
        Paragraph(escape(f"Version {made.version}, {made.made}, by {made.actor}"), styles["Normal"]),
        Spacer(1, 4 * mm),
        Paragraph(
            f"<b>{escape(audit.state.value.capitalize())}: {escape(audit.state.sentence)}</b>", styles["Heading3"]
        ),
    ]
    for section in sections(audit, made):
        flow += _flow(section, styles)
    document.build(flow, onLaterPages=_number_page, onFirstPage=_number_page)
    return out.getvalue()


def _flow(section: Section, styles: Any) -> list[Any]:
    """A section as paragraphs and a table that breaks over pages."""
    from reportlab.lib.units import mm  # noqa: PLC0415 - optional
    from reportlab.platypus import Paragraph, Spacer  # noqa: PLC0415

    flow: list[Any] = [Paragraph(escape(section.title), styles["Heading2"])]
    flow += [Paragraph(escape(text), styles["BodyText"]) for text in section.paragraphs]
    if section.rows:
        flow += [Spacer(1, 2 * mm), _table([section.head, *section.rows], section.texts, styles)]
    return flow


def _table(rows: Sequence[Sequence[str]], texts: int, styles: Any) -> Any:
    from reportlab.lib import colors  # noqa: PLC0415 - optional
    from reportlab.lib.styles import ParagraphStyle  # noqa: PLC0415
    from reportlab.lib.units import mm  # noqa: PLC0415
    from reportlab.platypus import Paragraph, Table  # noqa: PLC0415

    small = ParagraphStyle("cell", parent=styles["BodyText"], fontSize=8, leading=10)
    right = ParagraphStyle("number", parent=small, alignment=2)
    cells = [
        [Paragraph(_cell(cell, bold=not i), small if j < texts else right) for j, cell in enumerate(row)]
        for i, row in enumerate(rows)
    ]
    grid = [
        ("LINEBELOW", (0, 0), (-1, -1), 0.25, colors.lightgrey),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LEFTPADDING", (0, 0), (-1, -1), 0),
    ]
    return Table(cells, colWidths=[width * mm for width in _widths(rows)], repeatRows=1, style=grid)


def _widths(rows: Sequence[Sequence[str]]) -> list[float]:
    """Columns as wide as their longest cells ask for, within reason."""
    wanted = [min(max(len(row[i]) for row in rows), 60) + 4 for i in range(len(rows[0]))]
    return [_WIDTH * width / sum(wanted) for width in wanted]


def _cell(text: str, *, bold: bool) -> str:
    short = escape(text if len(text) <= _CELL else f"{text[:_CELL]}…")
    return f"<b>{short}</b>" if bold else short


def _number_page(canvas: Any, document: Any) -> None:
    canvas.setFont("Helvetica", 8)
    canvas.drawRightString(document.pagesize[0] - 50, 30, f"{canvas.getPageNumber()}")
