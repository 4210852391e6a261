"""References to Google's Secret Manager, before the lab's stand-in of its API."""

import google.auth
import google.oauth2.credentials
import pytest

from ironburst.system import secrets
from lab.google.iam import Binding, Iam
from lab.google.secret_manager import SecretManager

REFERENCE = "google-secretmanager:lab-project/munge-key"


@pytest.fixture
def store(monkeypatch):
    iam = Iam([Binding("serviceAccount:a@b", frozenset({"secretmanager.versions.access"}))], {"token": "a@b"})
    made = SecretManager(iam)
    made.held["projects/lab-project/secrets/munge-key"] = b"s3cret"
    made.held["projects/lab-project/secrets/all"] = b'{"bmc": "hunter2"}'
    made.held["projects/lab-project/secrets/bytes"] = b"\xff\xfe"
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER", made.url)
    signed_in = google.oauth2.credentials.Credentials("token"), None
    monkeypatch.setattr(google.auth, "default", lambda scopes: signed_in)
    yield made
    made.shutdown()
    made.server_close()


def test_a_secret_is_its_newest_version_and_a_part_of_it(store):
    assert secrets.resolve(REFERENCE) == "s3cret" and secrets.in_a_store(REFERENCE)
    assert secrets.resolve("google-secretmanager:lab-project/all#bmc") == "hunter2"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("lab-project/nothing", "404"),
        ("lab-project/all#absent", "no text under the key 'absent'"),
        ("lab-project/bytes", "it holds no text"),
    ],
)
def test_what_does_not_resolve_says_why_in_one_sentence(store, name, why):
    with pytest.raises(secrets.SecretError, match=f"Google's Secret Manager says .*{why}") as raised:
        secrets.resolve(f"google-secretmanager:{name}")
    assert "hunter2" not in str(raised.value)


def test_without_a_right_credentials_or_an_answer_nothing_resolves(store, monkeypatch):
    store.refusals = 1
    with pytest.raises(secrets.SecretError, match="says 403"):
        secrets.resolve(REFERENCE)
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER", "http://127.0.0.1:9/")
    with pytest.raises(secrets.SecretError, match=r"says nothing \(ConnectionRefusedError\)"):
        secrets.resolve(REFERENCE)

    def nobody(scopes):
        raise google.auth.exceptions.DefaultCredentialsError("none")

    monkeypatch.setattr(google.auth, "default", nobody)
    with pytest.raises(secrets.SecretError, match="says DefaultCredentialsError"):
        secrets.resolve(REFERENCE)


@pytest.mark.parametrize("name", ["munge-key", "Lab/munge", "lab-project/a/b", "projects/p/secrets/n"])
def test_what_names_no_secret_is_said_at_once(name):
    with pytest.raises(secrets.SecretError, match="as in google-secretmanager:gpu-prod-4711/munge-key"):
        secrets.check(f"google-secretmanager:{name}")
