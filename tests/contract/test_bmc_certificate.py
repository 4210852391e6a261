"""Which certificate a BMC may show, over TLS on the loopback."""

import ssl
import subprocess
from hashlib import sha256

import pytest

from ironburst.adapters.redfish import client as redfish
from tests.contract.emulator import PASSWORD, serving


def certificate(folder, name):
    """A self-signed one for the loopback, with its key: its file and its SHA-256."""
    path = folder / f"{name}.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bmc"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(path), "-out", f"{path}.crt"]
    subprocess.run([*command.split(), *names], check=True, capture_output=True, timeout=30)
    pem = (folder / f"{name}.pem.crt").read_text()
    path.write_text(path.read_text() + pem)
    return path, sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("own"), "own")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("other"), "other")


@pytest.fixture
def bmc(tmp_path, own):
    with serving(tmp_path, certificate=own[0]) as (bmc, _):
        yield bmc


@pytest.fixture
def read(bmc):
    def read(**how):
        return redfish.read_hardware(redfish.BmcAccess("dgx01", bmc.url, "admin", PASSWORD, timeout_s=20, **how))

    return read


def asked(tmp_path):
    """Whether anything was sent to the BMC."""
    return (tmp_path / "requests.jsonl").exists()


def test_a_certificate_with_the_declared_fingerprint_is_taken(read, own):
    assert read(sha256=own[1]).serial == "LAB-DGX01"


def test_another_one_gets_no_password_and_both_are_told(bmc, read, own, other, tmp_path):
    with pytest.raises(redfish.BmcUnreachable) as caught:
        read(sha256=other[1])
    text = str(caught.value)
    assert text.startswith(
        f"dgx01: BMC {bmc.url} shows a certificate with the SHA-256 {own[1]}, declared is {other[1]}: "
    )
    assert "declare the new one" in text and PASSWORD not in text and "\n" not in text
    assert not asked(tmp_path)


def test_a_declared_ca_is_asked_and_no_other(read, own, other, tmp_path):
    with pytest.raises(redfish.BmcUnreachable, match=rf"CA of {other[0]}\.crt signed for this address: .*caFile"):
        read(ca_file=f"{other[0]}.crt")
    assert not asked(tmp_path)
    assert read(ca_file=f"{own[0]}.crt").serial == "LAB-DGX01"


def test_without_one_the_systems_are_asked(read, own, monkeypatch, tmp_path):
    with pytest.raises(redfish.BmcUnreachable, match="a CA of this machine's signed"):
        read()
    assert not asked(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", f"{own[0]}.crt")  # as update-ca-certificates puts it in
    assert read().serial == "LAB-DGX01"


def test_a_ca_file_that_is_not_there(read):
    with pytest.raises(redfish.BmcError, match=r"dgx01: .*/nowhere/ca.pem, can't be read .No such file"):
        read(ca_file="/nowhere/ca.pem")


def test_none_is_checked_where_that_is_declared(read):
    assert read(verify_tls=False).serial == "LAB-DGX01"


@pytest.mark.parametrize("how", [{"ca_file": True}, {"verify_tls": False}, {"sha256": True}])
def test_cas_are_read_once_for_all_requests_or_not_at_all(read, own, monkeypatch, how, tmp_path):
    """140 of a system take longer to read than a BMC to answer."""
    given = {"ca_file": f"{own[0]}.crt", "sha256": own[1], "verify_tls": False}
    times = []
    for name in ("load_default_certs", "load_verify_locations"):
        load = getattr(ssl.SSLContext, name)
        monkeypatch.setattr(ssl.SSLContext, name, lambda *given, load=load: times.append(1) or load(*given))
    assert read(**{key: given[key] for key in how}).serial == "LAB-DGX01"
    assert len(times) == ("ca_file" in how) and len((tmp_path / "requests.jsonl").read_text().splitlines()) > 50
