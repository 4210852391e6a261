"""Secret references."""

from pathlib import Path

import pytest

from ironburst.system import secrets


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


def test_a_secret_is_asked_for_in_its_region(monkeypatch):
    asked = []

    class Client:
        def get_secret_value(self, SecretId):
            return {"SecretString": "s3cret"}

    def client(service, region_name):
        asked.append((service, region_name))
        return Client()

    monkeypatch.setattr("boto3.client", client)
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:bmc-Ab12Cd"
    assert secrets.resolve("aws-secretsmanager:hall/bmc", region="us-east-1") == "s3cret"
    secrets.resolve(f"aws-secretsmanager:{arn}", region="us-east-1")
    assert asked == [("secretsmanager", "us-east-1"), ("secretsmanager", "eu-west-1")]


def test_without_a_region_it_says_what_to_set(monkeypatch, tmp_path):
    for name in ("AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(secrets.SecretError, match="export AWS_DEFAULT_REGION"):
        secrets.resolve("aws-secretsmanager:hall/bmc")


def test_a_new_value_is_put_behind_a_whole_secret_alone(monkeypatch):
    put = []

    class Client:
        def put_secret_value(self, SecretId, SecretString):
            put.append((SecretId, SecretString))

    monkeypatch.setattr("boto3.client", lambda service, region_name: Client())
    secrets.store("aws-secretsmanager:ironburst/lab/join-token", "abc", region="us-east-1")
    assert put == [("ironburst/lab/join-token", "abc")]
    for reference in ("file:/tmp/x", "env:X", "aws-secretsmanager:a#key"):
        with pytest.raises(secrets.SecretError, match="nothing is written to"):
            secrets.store(reference, "abc")
    assert len(put) == 1


def test_what_aws_says_of_a_value_that_it_doesnt_take(monkeypatch):
    from botocore.exceptions import ClientError

    class Client:
        def put_secret_value(self, SecretId, SecretString):
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "PutSecretValue")

    monkeypatch.setattr("boto3.client", lambda service, region_name: Client())
    with pytest.raises(secrets.SecretError, match="AWS Secrets Manager says ResourceNotFoundException") as raised:
        secrets.store("aws-secretsmanager:a", "hunter2")
    assert "hunter2" not in str(raised.value)


def test_a_relative_file_lies_in_the_project_wherever_a_command_is_started(tmp_path, monkeypatch):
    project, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    for folder in (project / "stacks", project / "a" / "b", elsewhere):
        folder.mkdir(parents=True)
    (project / "Pulumi.yaml").write_text("name: site\n")
    (project / "bmc.password").write_text("s3cret\n")
    for started in (project, project / "a" / "b"):
        monkeypatch.chdir(started)
        assert secrets.resolve("file:bmc.password") == "s3cret"
    monkeypatch.chdir(elsewhere)
    assert secrets.resolve("file:bmc.password", near=project / "stacks" / "Pulumi.prod.yaml") == "s3cret"
    (elsewhere / "Pulumi.yaml").write_text("name: another\n")
    assert secrets.resolve("file:bmc.password", near=project / "stacks" / "Pulumi.prod.yaml") == "s3cret"
    (elsewhere / "Pulumi.yaml").unlink()
    checkout = Path(secrets.__file__).parents[2]
    assert secrets.file_of("file:lab/bmc.password") == checkout / "lab/bmc.password"
    monkeypatch.setattr(secrets, "__file__", str(tmp_path / "site-packages/ironburst/secrets.py"))  # of a wheel
    with pytest.raises(secrets.SecretError, match=r"it is relative, and there is no Pulumi.yaml above .* file:/etc/"):
        secrets.resolve("file:bmc.password")
