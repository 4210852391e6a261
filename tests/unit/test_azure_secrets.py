"""References to Azure's Key Vault, before the lab's stand-in of its API."""

from types import SimpleNamespace

import azure.identity
import pytest
from azure.core.exceptions import ClientAuthenticationError

from ironburst.system import secrets
from lab.azure.key_vault import KeyVault

REFERENCE = "azure-keyvault:lab-vault/munge-key"


@pytest.fixture
def store(monkeypatch):
    made = KeyVault(lambda token: token == "token")
    made.held["lab-vault/munge-key"] = "s3cret"
    made.held["lab-vault/all"] = '{"bmc": "hunter2"}'
    monkeypatch.setenv("AZURE_KEYVAULT_URL", f"http://127.0.0.1:{made.server_port}")
    signed_in = SimpleNamespace(get_token=lambda scope: SimpleNamespace(token="token"))
    monkeypatch.setattr(azure.identity, "DefaultAzureCredential", lambda: signed_in)
    yield made
    made.shutdown()
    made.server_close()


def test_a_secret_is_its_newest_version_and_a_part_of_it(store):
    assert secrets.resolve(REFERENCE) == "s3cret" and secrets.in_a_store(REFERENCE)
    assert secrets.resolve("azure-keyvault:lab-vault/all#bmc") == "hunter2"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("lab-vault/nothing", "404 SecretNotFound"),
        ("lab-vault/all#absent", "no text under the key 'absent'"),
    ],
)
def test_what_does_not_resolve_says_why_in_one_sentence(store, name, why):
    with pytest.raises(secrets.SecretError, match=f"Azure's Key Vault says .*{why}") as raised:
        secrets.resolve(f"azure-keyvault:{name}")
    assert "hunter2" not in str(raised.value)


def test_without_a_right_credentials_or_an_answer_nothing_resolves(store, monkeypatch):
    store.refusals = 1
    with pytest.raises(secrets.SecretError, match="says 403 Forbidden"):
        secrets.resolve(REFERENCE)
    monkeypatch.setenv("AZURE_KEYVAULT_URL", "http://127.0.0.1:9")
    with pytest.raises(secrets.SecretError, match=r"says nothing \(ConnectionError\)"):
        secrets.resolve(REFERENCE)

    def nobody(scope):
        raise ClientAuthenticationError("none")

    monkeypatch.setattr(azure.identity, "DefaultAzureCredential", lambda: SimpleNamespace(get_token=nobody))
    with pytest.raises(secrets.SecretError, match="says ClientAuthenticationError"):
        secrets.resolve(REFERENCE)


@pytest.mark.parametrize("name", ["munge-key", "lab-vault/a_b", "lab-vault/a/b", "v/n", "1vault/n"])
def test_what_names_no_secret_is_said_at_once(name):
    with pytest.raises(secrets.SecretError, match="as in azure-keyvault:gpu-prod/munge-key"):
        secrets.check(f"azure-keyvault:{name}")


def test_a_value_is_put_with_the_same_credentials(store, monkeypatch):
    """The stand-in only reads, so what is sent is looked at: docs of "Set Secret", 7.4."""
    sent = []

    def request(verb, url, **more):
        sent.append((verb, url, more["params"], more["json"], more["headers"]["Authorization"]))
        return SimpleNamespace(status_code=200, json=lambda: {"value": "new"})

    monkeypatch.setattr("requests.request", request)
    secrets.store(REFERENCE, "new")
    ((verb, url, query, body, token),) = sent
    assert (verb, url.rpartition("/lab-vault")[2]) == ("PUT", "/secrets/munge-key")
    assert (query, body, token) == ({"api-version": "7.4"}, {"value": "new"}, "Bearer token")
