"""Pages of a vault with many datasets and recipients: a page at a time, found by name, never all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx2
import pytest
from tests import wards
from tests.serving import PASSWORD, Service, serving, sqlite_vault

from sfumato.vault.grants import existing

RECIPIENTS, DATASETS = 101, 27


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("pages")
    vault = sqlite_vault(folder)
    for number in range(DATASETS):
        vault.add(wards.policy(f"d{number}"), wards.table(60, seed=number), accept_overlap="the rows of a test")
    for number in range(RECIPIENTS):
        vault.recipient(f"r{number}")
    for number in range(6):
        vault.grant("r100", f"d{number}", "public")
    vault.grant("r99", "d0", "public")
    vault.erase_recipient("r98")
    with serving(vault, folder) as found:
        yield found


@pytest.fixture
def client(service: Service) -> Iterator[httpx2.Client]:
    with service.client() as signed_in:
        signed_in.post("/signin", data={"name": "anna", "password": PASSWORD})
        yield signed_in


def _names(text: str, kind: str) -> list[str]:
    return re.findall(rf'(?:scope="row">|<h2>)<a href="/console/{kind}/([\w.-]+)"', text)


@pytest.mark.parametrize(("path", "kind"), [("/console", "datasets"), ("/console/recipients", "recipients")])
def test_every_one_is_on_one_page(client: httpx2.Client, service: Service, path: str, kind: str) -> None:
    pages, number = [], 1
    while True:
        page = client.get(f"{path}?page={number}").text
        pages.append(_names(page, kind))
        if f"?page={number + 1}" not in page:
            break
        number += 1
    found = [name for names in pages for name in names]
    with service.vault.ledger.reading(service.vault.keys()) as reading:
        expected = {getattr(one, kind[:-1]) for one in existing(reading, kind[:-1])}
    assert len(found) == len(set(found)) > 25
    assert set(found) == expected
    assert "r98" not in found  # it was erased
    assert max(map(len, pages)) == 25
    assert _names(client.get(f"{path}?page=1000").text, kind) == []


def test_one_is_found_by_its_name(client: httpx2.Client) -> None:
    found = client.get("/console/recipients?name=r3")
    assert (found.status_code, found.headers["location"]) == (303, "/console/recipients/r3")
    assert client.get("/console?name=d3").headers["location"] == "/console/datasets/d3"
    assert client.get("/console/recipients/r1234").status_code == 404
    assert client.get("/console/recipients", params={"name": "//elsewhere.example"}).status_code == 422


def test_a_recipient_of_many_datasets_is_counted_and_one_of_few_has_them_named(client: httpx2.Client) -> None:
    page = client.get("/console/recipients").text
    assert "of 6 datasets, revoked ones included" in page
    assert '<a href="/console/datasets/d0">d0</a> at public' in page


def test_a_form_offers_some_recipients_where_there_are_many(client: httpx2.Client, service: Service) -> None:
    page = client.get("/console/datasets/d0").text
    offered = re.findall(r"<option>(r\d+)</option>", page)
    assert 5 <= len(offered) <= 10
    assert 'list="recipients"' in page


def test_grants_of_a_dataset_are_shown_a_page_at_a_time(client: httpx2.Client, service: Service) -> None:
    vault = service.vault
    for number in range(60):
        vault.grant(f"r{number}", "d9", "partner" if number % 2 else "public")
    pages = [_names(client.get(f"/console/datasets/d9?page={number}").text, "recipients") for number in (1, 2, 3, 4)]
    assert [len(names) for names in pages] == [25, 25, 10, 0]
    found = [name for names in pages for name in names]
    assert len(set(found)) == 60
    assert found[:30] == sorted(f"r{number}" for number in range(1, 60, 2))  # the higher level first
    assert "Page 2 of 60 grants" in client.get("/console/datasets/d9?page=2").text
