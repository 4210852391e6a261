"""Secret references."""

import pytest

from ironburst import secrets


def test_secret_references(tmp_path, monkeypatch):
    monkeypatch.setenv("IRONBURST_TEST_SECRET", "abc")
    (tmp_path / "s").write_text("def\n")
    assert secrets.resolve("env:IRONBURST_TEST_SECRET") == "abc"
    assert secrets.resolve(f"file:{tmp_path}/s") == "def"
    (tmp_path / "empty").write_text("")
    empty = f"file:{tmp_path}/empty"
    for reference in ("env:IRONBURST_TEST_NOT_SET", "file:/no/such", empty, "vault:x", "plain", "env:"):
        with pytest.raises(secrets.SecretError):
            secrets.resolve(reference)


def test_a_secret_given_in_place_of_a_reference_is_not_repeated():
    with pytest.raises(secrets.SecretError) as raised:
        secrets.resolve("hunter2")
    assert "hunter2" not in str(raised.value)
