"""Browser tests of an owner's work: audits with options, grants of parts, traces of leaks, tables of sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, expect
from tests import wards
from tests.browser.test_console import check_page, opened, sign_in
from tests.postgres import Server
from tests.service.test_sources import SECRET, source_file
from tests.serving import Service, serving, sqlite_vault

import sfumato as sf


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(sqlite_vault(tmp_path), tmp_path) as found:
        yield found


def _signed_in(browser: Browser, service: Service, token: str) -> Page:
    page = opened(browser, service)
    page.goto("/signin")
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Show my copies").click()
    page.wait_for_url("**/mine")
    return page


def test_an_audit_with_options_is_cancelled_and_run_again(browser: Browser, service: Service) -> None:
    service.vault.add(wards.policy("large"), wards.table(40_000, seed=4))
    for recipient, level in (("clinic", "partner"), ("insurer", "public")):
        service.vault.grant(recipient, "large", level)
    page = opened(browser, service)
    sign_in(page)
    page.goto("/console/datasets/large")
    page.get_by_role("button", name="Run an audit").click()
    page.wait_for_url("**/console/jobs/*")
    expect(page.locator("#stage")).to_contain_text(re.compile(r"about \d+ (s|min) left"), timeout=90_000)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("This job was cancelled. No result was stored.")).to_be_visible(timeout=60_000)
    page.goto("/console/datasets/ward")
    page.get_by_text("Options", exact=True).click()
    page.get_by_role("checkbox", name="insurer").check()
    page.get_by_role("group", name="Quasi-identifiers").get_by_label("age").check()
    page.get_by_label("measures of utility").check()
    page.get_by_label("Maximum number of records").fill("200")
    check_page(page, "audit-options", "desktop", "light")
    page.get_by_role("button", name="Run an audit").click()
    expect(page.locator(".verdict")).to_contain_text("The column at the highest risk: ", timeout=120_000)
    job = page.url.rpartition("/")[2]
    with service.client(service.vault.token(scopes=["read"])["token"]) as client:
        summary = client.get(f"/api/v1/jobs/{job}").json()["result"]["summary"]
    assert not summary.get("utility")
    assert [one["name"] for one in summary["copies"]] == ["insurer"]
    page.context.close()


def test_parts_are_granted_until_a_day_and_revoked_at_once(browser: Browser, service: Service) -> None:
    page = opened(browser, service)
    page.on("dialog", lambda dialog: dialog.accept())
    sign_in(page)
    page.goto("/console/datasets/ward")
    page.get_by_label("Recipient", exact=True).select_option("stranger")
    page.get_by_label("Level", exact=True).fill("internal")
    page.get_by_label("Expires").fill("2030-12-31")
    page.get_by_text("Only some columns").click()
    for column in ("region", "income"):
        page.get_by_role("group", name="Columns").get_by_label(column).check()
    page.get_by_label("Only rows where").fill("region == 'north'")
    page.get_by_role("button", name="Grant", exact=True).click()
    row = page.get_by_role("row", name="stranger")
    expect(row).to_contain_text("income, region where region == 'north'")
    expect(row).to_contain_text("2030-12-31")
    theirs = _signed_in(browser, service, service.vault.token("stranger")["token"])
    with theirs.expect_download() as download:
        theirs.get_by_role("link", name="Parquet", exact=True).click()
    copy = pq.read_table(download.value.path())
    assert set(copy.column_names) == {"region", "income"}
    assert set(copy["region"].to_pylist()) == {"north"}
    page.reload()
    expect(row).to_contain_text("version 1")
    page.get_by_role("button", name="Revoke the grant of stranger").click()
    expect(page.get_by_role("row", name="stranger")).to_have_count(0)
    assert theirs.request.get(f"{service.url}/api/v1/copies/ward").status in (403, 404)
    theirs.reload()
    expect(theirs.get_by_text("You have no grants at the moment")).to_be_visible()
    page.context.close()


def test_a_recipient_fetches_checks_and_learns_what_is_new(browser: Browser, service: Service, tmp_path: Path) -> None:
    page = _signed_in(browser, service, service.vault.token("clinic")["token"])
    files = {}
    for name, suffix in (("CSV (gzip)", ".csv.gz"), ("Arrow stream", ".arrows"), ("Parquet", ".parquet")):
        with page.expect_download() as download:
            page.get_by_role("link", name=name, exact=True).click()
        assert download.value.suggested_filename == f"ward.v1{suffix}"
        files[suffix] = Path(tmp_path, f"ward.v1{suffix}")
        download.value.save_as(files[suffix])
    with pa.ipc.open_stream(files[".arrows"]) as stream:
        assert stream.read_all().equals(pq.read_table(files[".parquet"]), check_metadata=False)
    page.get_by_label("A copy in Parquet").set_input_files(files[".parquet"])
    page.get_by_role("button", name="Check it").click()
    expect(page.get_by_text("Unaltered: the certificate is valid")).to_contain_text("version 1, 300 rows, for clinic")
    altered = sf.read_copy(files[".parquet"])
    moved = altered.set_column(altered.column_names.index("age"), "age", pa.array(altered["age"].to_numpy() + 1))
    pq.write_table(moved.replace_schema_metadata(altered.schema.metadata), tmp_path / "altered.parquet")
    page.get_by_label("A copy in Parquet").set_input_files(tmp_path / "altered.parquet")
    page.get_by_role("button", name="Check it").click()
    expect(page.locator("#checked.alarm")).to_be_visible()
    with page.expect_popup(timeout=120_000) as opening:  # the page opens when the profile is made
        page.get_by_role("link", name="what it tells of the original").click()
    expect(opening.value.get_by_role("heading", name="income").first).to_be_visible(timeout=60_000)
    opening.value.close()
    rows = wards.table(20, seed=5).set_column(0, "id", pa.array(np.arange(900_000, 900_020)))
    service.vault.append("ward", rows)
    page.reload()
    expect(page.get_by_text("New since your last copy")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="fetch these alone").click()
    assert pq.read_table(download.value.path()).num_rows == 20
    page.context.close()


@pytest.mark.parametrize(("size", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_leak_is_traced(browser: Browser, service: Service, tmp_path: Path, size: str, scheme: str) -> None:
    """The page says who, how sure, on what evidence, and what it does not say."""
    vault = service.vault
    vault.add(wards.policy("leaky"), wards.table(2_000, seed=6), traced=True)
    for name in ("clinic", "insurer"):
        vault.grant(name, "leaky", "partner")
        vault.release(name, "leaky", tmp_path / f"{name}.parquet")
    copy = pq.read_table(tmp_path / "insurer.parquet").drop_columns(["id"]).slice(100, 1500)
    pq.write_table(copy.replace_schema_metadata(None), tmp_path / "leaked.parquet")
    pq.write_table(wards.table(400, seed=77).drop_columns(["id"]), tmp_path / "other.parquet")
    page = opened(browser, service, size, scheme)  # type: ignore[arg-type]
    sign_in(page)
    for file, said in (
        ("leaked", "Made from the copy of insurer"),
        ("other", "Not traced to any copy: nobody is accused"),
    ):
        page.goto("/console/datasets/leaky")
        page.get_by_label("Leaked file").set_input_files(tmp_path / f"{file}.parquet")
        page.get_by_role("button", name="Trace").click()
        expect(page.locator(".verdict")).to_contain_text(said, timeout=60_000)
        check_page(page, f"trace-{file}", size, scheme)  # type: ignore[arg-type]
        if file == "leaked":
            expect(page.get_by_role("row", name="insurer")).to_contain_text("accused")
            expect(page.get_by_role("row", name="clinic")).to_contain_text("not accused")
            expect(page.get_by_text("rows of the file were compared")).to_contain_text(
                re.compile(r"1,\d{3} of 1,500 rows")
            )
            expect(page.get_by_text("Who passed the file on")).to_be_visible()
    page.goto("/console/datasets/leaky")
    for said in ("made from the copy of insurer", "not traced to any copy: nobody is accused"):
        expect(page.get_by_text(said)).to_be_visible()
    page.context.close()


def test_an_owner_chooses_a_source(browser: Browser, tmp_path: Path, postgres: Server) -> None:
    (tmp_path / "vault").mkdir()
    options = ("--sources", str(source_file(tmp_path, postgres)))
    with serving(sqlite_vault(tmp_path / "vault"), tmp_path / "vault", *options) as service:
        page = opened(browser, service)
        sign_in(page)
        page.goto("/console/datasets/new")
        page.get_by_label("Where the table is").select_option("hr-wards")
        expect(page.get_by_label("File (CSV")).to_be_hidden()
        expect(page.get_by_label("Dataset name")).to_have_value("hr-wards")
        check_page(page, "new-source", "desktop", "light")
        page.get_by_role("button", name="Read it and draft a policy").click()
        expect(page.get_by_role("tab", name="Columns")).to_be_focused(timeout=30_000)
        expect(page.locator("#columns")).to_contain_text("income")
        assert SECRET not in page.content()
        page.get_by_role("button", name="Add to the vault").click()
        page.wait_for_url("**/console/jobs/*")
        expect(page.get_by_role("link", name="Go to hr-wards")).to_be_visible(timeout=60_000)
        page.context.close()
