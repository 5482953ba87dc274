"""What notebooks and prompts show, and manifests that travel with pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests import offices

import sfumato as sf
from sfumato.mining import Moments, NaiveBayes, profile

ORIGINAL = offices.table(2000)
SCHEME = offices.policy().fit(ORIGINAL)
COPY = SCHEME.release(ORIGINAL, "far", offices.key())


def _audit(folder: Any) -> Any:
    vault = sf.Vault.create(folder / "vault")
    vault.add(offices.policy(), ORIGINAL)
    vault.recipient("university")
    vault.grant("university", "office", "far")
    return vault.audit("office", attacks=["llse", "bayes"], without=["measures", "utility"])


def test_everything_has_a_short_text_and_a_table(tmp_path: Any) -> None:
    estimate = sf.attack("llse", [COPY])
    audit = _audit(tmp_path)
    shown = {
        "Policy of 'office'": offices.policy(),
        "Scheme of 'office'": SCHEME,
        "Copy of 'office'": sf.Manifest.of(COPY),
        "Estimate by 'llse'": estimate,
        "Score of 'llse'": sf.score(estimate, SCHEME.arranged(ORIGINAL, offices.key())),
        "Audit of 'office'": audit,
    }
    for title, one in shown.items():
        assert repr(one).startswith(f"<{title}")
        assert len(repr(one)) < 300
        page = one._repr_html_()
        assert title.replace("'", "&#x27;") in page
        assert "<table" in page
        assert "age" in page
        assert len(page) < 20_000
    assert audit.state.value in repr(audit)
    for finding in audit.findings:
        assert finding.advice in audit.description().notes[0] or len(audit.findings) > 1
    assert "income" in profile(COPY)._repr_html_()


def test_nothing_in_a_description_is_html_of_the_data() -> None:
    policy = sf.Policy.loads(
        'dataset = "d"\n[levels]\na = 0.5\n[columns]\n"<script>" = { role = "uniform", domain = ["<b>", "c"] }'
    )
    page = policy._repr_html_()
    assert "<script>" not in page
    assert "<b>'" not in page
    assert "&lt;script&gt;" in page


def test_secrets_are_in_no_description() -> None:
    key = sf.Key.generate()
    copy = SCHEME.release(ORIGINAL, "far", key)
    for one in (SCHEME, sf.Manifest.of(copy)):
        assert key.expose().hex() not in repr(one) + one._repr_html_()


def test_the_manifest_travels_with_pandas() -> None:
    frame = sf.to_pandas(COPY)
    assert sf.Manifest.of(frame) == sf.Manifest.of(COPY)
    assert list(frame.columns) == COPY.column_names
    some = frame[frame["income"] > 0]  # conditions keep attributes
    fitted = NaiveBayes().fit(some[["age", "income", "site"]], some["site"])
    expected = NaiveBayes(manifest=sf.Manifest.of(COPY)).fit(some[["age", "income", "site"]], some["site"])
    assert np.allclose(fitted.predict_proba(some[["age", "income"]]), expected.predict_proba(some[["age", "income"]]))
    assert np.allclose(Moments().fit(frame).covariance_, Moments().fit(COPY).covariance_)


def test_a_frame_that_lost_its_manifest_is_refused() -> None:
    lost = COPY.to_pandas()
    with pytest.raises(sf.SfumatoError, match="to_pandas"):
        NaiveBayes().fit(lost, "site")
    with pytest.raises(sf.SfumatoError, match="to_pandas"):
        Moments().fit(lost)


def test_pictures_return_axes(tmp_path: Any) -> None:
    from matplotlib import pyplot as plt

    plain = profile(COPY)
    axes = plain.plot("age")
    assert axes.get_xlabel() == "age"
    own = plt.subplots()[1]
    assert plain.plot(axes=own) is own  # drawn where the caller wants it
    with pytest.raises(sf.SfumatoError, match="got 'agee'"):
        plain.plot("agee")
    audit = _audit(tmp_path)
    drawn = audit.plot()
    shown = {label.get_text() for label in drawn.get_yticklabels()}
    assert shown == {risk.column for risk in audit.column_risks}
    widths = sorted(round(bar.get_width(), 6) for bar in drawn.containers[0])
    assert widths == sorted(round(risk.recovered, 6) for risk in audit.column_risks)
    plt.close("all")


def test_progress_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a notebook it is updated where the cell is, in a terminal it overwrites itself, and it is gone at the end."""
    import io
    import sys
    from types import SimpleNamespace

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with sf.progress() as shown:
        shown.stage("attacking")
        shown.advance(1000)
    assert "attacking (0 s)" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert "\n" not in terminal.getvalue()

    updates: list[str] = []
    handle = SimpleNamespace(update=updates.append)
    display = SimpleNamespace(Pretty=str, display=lambda *_, **__: handle)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with sf.progress() as shown:
        shown.stage("fitting")
    assert updates == ["fitting (0 s)", ""]
