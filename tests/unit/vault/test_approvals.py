"""Sign-off packs and approvals: signed, recorded, and required before a release where the policy says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests import wards

import sfumato as sf
from sfumato.audit.states import State
from sfumato.errors import GrantError, ManifestError, PolicyError, VaultError
from sfumato.release.certificate import check_report
from sfumato.vault.delivery import Delivery

QUICK = ("llse", "collusion")


@pytest.fixture
def vault(tmp_path: Path) -> sf.Vault:
    found = sf.Vault.create(tmp_path / "vault")
    policy = sf.Policy.loads("require_approval = true\n" + wards.POLICY)
    found.add(policy, wards.table(400))
    found.recipient("clinic")
    found.grant("clinic", "ward", "partner")
    return found


def reported(vault: sf.Vault, path: Path) -> sf.Vault:
    vault.audit("ward", attacks=QUICK, report=path)
    return vault


def test_a_version_is_released_only_after_its_approval(vault: sf.Vault, tmp_path: Path) -> None:
    with pytest.raises(GrantError, match="requires an approval, and version 1 has not been approved"):
        vault.release("clinic", "ward", tmp_path / "copy.parquet")
    with pytest.raises(VaultError, match="needs a report on version 1 of ward"):
        vault.approve("ward", "Ada")
    reported(vault, tmp_path / "pack.pdf")
    vault.approve("ward", "Ada", role="DPO", reason="too close", approved=False)
    with pytest.raises(GrantError, match="version 1 was rejected"):
        vault.release("clinic", "ward", tmp_path / "copy.parquet")
    entry = vault.approve("ward", "Ada", role="DPO", reason="after a talk")
    assert (entry.action, entry.body["officer"], entry.body["version"]) == ("approved", "Ada", 1)
    vault.release("clinic", "ward", tmp_path / "copy.parquet")
    vault.grant("clinic", "ward", 0.7)  # more than was audited and approved
    with pytest.raises(GrantError, match=r"approved up to fidelity 0\.5, and this copy has 0\.69"):
        vault.release("clinic", "ward", tmp_path / "better.parquet")
    assert not (tmp_path / "better.parquet").exists()
    status = vault.overview("ward")
    assert status["sign-off pack"].endswith(f"version 1, {entry.at[:10]}")
    assert status["decision"].startswith("approved by Ada, version 1")
    vault.update("ward", wards.table(410), replace=True)
    with pytest.raises(GrantError, match="version 2 has not been approved"):  # an approval is of one version
        vault.release("clinic", "ward", tmp_path / "next.parquet")
    assert not (tmp_path / "next.parquet").exists()
    assert vault.verify().sound


def test_an_approval_is_of_the_columns_and_rows_that_were_assessed(vault: sf.Vault, tmp_path: Path) -> None:
    vault.grant("clinic", "ward", "partner", columns=["age", "income"])
    reported(vault, tmp_path / "pack.html").approve("ward", "Ada")
    vault.release("clinic", "ward", tmp_path / "copy.parquet")
    vault.grant("clinic", "ward", 0.3, columns=["age"])  # less than was assessed
    vault.release("clinic", "ward", tmp_path / "less.parquet")
    for columns in (None, ["age", "diagnosis"]):
        vault.grant("clinic", "ward", "partner", columns=columns)
        with pytest.raises(GrantError, match="no copy that was assessed for the approval of version 1 of ward shows"):
            vault.release("clinic", "ward", tmp_path / "more.parquet")
    reported(vault, tmp_path / "again.html").approve("ward", "Ada")
    vault.release("clinic", "ward", tmp_path / "more.parquet")


def test_a_rejection_stops_copies_that_were_delivered_before(vault: sf.Vault, tmp_path: Path) -> None:
    reported(vault, tmp_path / "pack.html")
    vault.approve("ward", "Ada")
    first = b"".join(Delivery.of(vault, "clinic", "ward").chunks("csv"))
    assert b"".join(Delivery.of(vault, "clinic", "ward").chunks("csv")) == first
    vault.approve("ward", "Ada", approved=False)
    with pytest.raises(GrantError, match="version 1 was rejected"):
        Delivery.of(vault, "clinic", "ward")


def test_a_pack_is_signed_and_every_change_is_noticed(vault: sf.Vault, tmp_path: Path) -> None:
    pack = tmp_path / "pack.html"
    reported(vault, pack)
    assert check_report(pack, vault.public_key) == vault.public_key
    text = pack.read_text(encoding="utf-8")
    assert "ONLY SOME ATTACKS WERE RUN: " in text
    for part in ("Disclosure risk assessment of ward", "Singling out", "Utility", "Privacy budget", "Five Safes"):
        assert part in text
    shutil.copy(f"{pack}.sig", tmp_path / "other.html.sig")
    (tmp_path / "other.html").write_text(text.replace("Utility", "Futility"), encoding="utf-8")
    with pytest.raises(ManifestError, match=r"other\.html must be as it was signed"):
        check_report(tmp_path / "other.html")
    with pytest.raises(ManifestError, match="must be signed by 0000"):
        check_report(pack, "0" * 64)
    assert vault.log()[-1].body["state"] in set(State)


def test_unsound_copies_cannot_be_approved(vault: sf.Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = vault.audit("ward", attacks=QUICK)
    monkeypatch.setattr(type(found), "state", property(lambda _: State.UNSOUND))
    vault.pack("ward", found, as_pdf=False)
    with pytest.raises(VaultError, match="found unsound cannot be approved"):
        vault.approve("ward", "Ada")


def test_a_report_that_cannot_be_written_is_refused_before_any_work(vault: sf.Vault, tmp_path: Path) -> None:
    found = vault.audit("ward", attacks=QUICK, without=("measures", "utility"))
    assert (found.measures, found.utility) == (None, None)
    with pytest.raises(VaultError, match="a report must end in"):
        vault.audit("ward", report=tmp_path / "pack.docx")
    with pytest.raises(VaultError, match="must name the officer"):
        vault.approve("ward", " ")
    with pytest.raises(PolicyError, match="`require_approval` must be true or false"):
        sf.Policy.loads('require_approval = "yes"\n' + wards.POLICY)
