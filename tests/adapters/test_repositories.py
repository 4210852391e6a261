"""Lists of repositories, made by the real apt-ftparchive and createrepo_c or written as they write them; and
`ironburst mirror` over them.
"""

import functools
import gzip
import hashlib
import http.server
import json
import lzma
import shutil
import subprocess
import threading

import pytest
import yaml

from ironburst.adapters import repositories
from ironburst.adapters.repositories import Unreadable
from ironburst.cli import main
from ironburst.software import mirror
from ironburst.software.mirror import File
from tests.playbooks.sample import REPOSITORY

VERSIONS = ["1.0~rc1-1", "1.0-1", "1.0-1+b1", "1.0a-1", "1.0+x-1", "1.0.1-1", "1.9-1", "1.10-1", "1:0.1-1"]


def test_versions_sort_as_dpkg_sorts_them():
    if not shutil.which("dpkg"):
        pytest.skip("there is no dpkg here")
    for left in VERSIONS:
        for right in VERSIONS:
            less = subprocess.run(["dpkg", "--compare-versions", left, "lt", right]).returncode == 0
            assert (mirror.order(left) < mirror.order(right)) == less, (left, right)


def test_the_newest_of_a_pattern_is_taken():
    files = [
        File("nvidia-open", version, "amd64", "", "", 1, "nv") for version in ("580.95.05-9", "580.95.05-10", "595.1-1")
    ]
    assert mirror.found("nvidia-open=580.95.05-*", "ubuntu2404", files).version == "580.95.05-10"
    assert mirror.found("nvidia-open=570.*", "debian13", files) is None
    rpms = [
        File("kmod-nvidia", version, "x86_64", "", "", 1, "nv")
        for version in ("3:580.95.05-1.el9", "3:580.126.09-1.el9")
    ]
    assert mirror.found("kmod-nvidia-580.95.05", "rhel9", rpms).version == "3:580.95.05-1.el9"
    assert mirror.found("kmod-nvidia", "rhel9", rpms).version == "3:580.126.09-1.el9"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path):
    """(a folder, its address)"""
    handler = functools.partial(Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield tmp_path, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


STANZA = """Package: {name}
Version: {version}
Architecture: {architecture}
Description: a stub
 Package: not this one
Filename: ./{name}_{version}_{architecture}.deb
Size: 1000000
SHA256: {sum}

"""


def stanza(name, version, architecture="amd64"):
    return STANZA.format(name=name, version=version, architecture=architecture, sum="ab" * 32)


def flat(folder, text, pack=gzip.compress, end=".gz"):
    """A flat repository, as NVIDIA's is."""
    folder.mkdir(exist_ok=True)
    data = pack(text.encode())
    (folder / f"Packages{end}").write_bytes(data)
    sums = f" {hashlib.sha256(data).hexdigest()} {len(data)} ./Packages{end}\n"
    (folder / "Release").write_text(
        f"Origin: x\nMD5Sum:\n 00 1 Packages{end}\nSHA256:\n{sums}SHA512:\n 00 1 Packages\n"
    )
    return {"name": folder.name, "suite": "/", "components": []}


@pytest.mark.parametrize(("pack", "end"), [(gzip.compress, ".gz"), (lzma.compress, ".xz"), (bytes, "")])
def test_a_flat_repository_of_apt(served, pack, end):
    folder, url = served
    text = stanza("a", "1-1") + stanza("b", "2-1", "arm64") + stanza("c", "3-1", "all")
    entry = flat(folder / "cuda", text, pack, end) | {"url": f"{url}/cuda/"}
    assert [(each.name, each.path, each.size) for each in repositories.apt(entry, "amd64")] == [
        ("a", "a_1-1_amd64.deb", 1000000),
        ("c", "c_3-1_all.deb", 1000000),
    ]


def test_a_list_that_is_not_the_named_one_is_refused(served):
    folder, url = served
    entry = flat(folder / "cuda", stanza("a", "1-1")) | {"url": f"{url}/cuda"}
    (folder / "cuda" / "Packages.gz").write_bytes(gzip.compress(stanza("a", "2-1").encode()))
    with pytest.raises(Unreadable, match="another SHA-256"):
        repositories.apt(entry, "amd64")
    with pytest.raises(Unreadable, match="none/Release can't be read"):
        repositories.apt(entry | {"url": f"{url}/none"}, "amd64")
    with pytest.raises(Unreadable, match="names no list main/binary-amd64/Packages"):
        (folder / "dists").mkdir()
        shutil.copytree(folder / "cuda", folder / "dists" / "stable")
        repositories.apt({"name": "x", "url": url, "suite": "stable", "components": ["main"]}, "amd64")


@pytest.mark.parametrize("system", ["ubuntu2404", "rhel9"])
def test_the_labs_stub_repositories(system):
    """Made by the real apt-ftparchive and createrepo_c (zstd), read from disk."""
    kind = "nv" if system == "rhel9" else "apt"
    found = sorted((REPOSITORY / ".lab/cache").glob(f"{system}{kind}-*/nv"))
    if not found:
        pytest.skip("the lab has not built these repositories here yet")
    entry = {"name": "nv", "url": f"file://{found[-1]}", "suite": "stable", "components": ["main"]}
    files = (repositories.dnf if system == "rhel9" else repositories.apt)(entry, "amd64")
    driver = "nvidia-driver-cuda-580.95.05" if system == "rhel9" else "nvidia-open=580.95.05-*"
    file = mirror.found(driver, system, files)
    data = (found[-1] / file.path).read_bytes()
    assert hashlib.sha256(data).hexdigest() == file.sha256 and len(data) == file.size


def test_what_a_mirror_has_to_hold(served, capsys):
    folder, url = served
    stack = folder / "Pulumi.staging.yaml"
    declared = (REPOSITORY / "stacks/Pulumi.staging.yaml").read_text()
    stack.write_text(declared.replace('driver: "580"', "driver: 580.95.05"))
    variables = folder / "repositories.yml"
    entry = flat(folder / "cuda", stanza("nvidia-open", "580.95.05-0ubuntu1")) | {"url": f"{url}/cuda"}
    variables.write_text(
        yaml.safe_dump({"base_apt_repositories": [entry, entry | {"name": "gone", "url": f"{url}/gone"}]})
    )
    asked = ["mirror", str(stack), "--repositories", f"ubuntu2404={variables}"]
    assert main(asked) == 2 and "has no lock: run `ironburst lock" in capsys.readouterr().err
    assert main(["lock", str(stack)]) == 0
    capsys.readouterr()
    assert main(asked) == 3
    said = capsys.readouterr().out
    assert "nvidia-open 580.95.05-0ubuntu1 amd64" in said and f"sha256:{'ab' * 32}" in said
    assert "munge: no repository that was read has it" in said
    assert "not read: gone:" in said
    assert main([*asked, "--json"]) == 3
    (system,) = json.loads(capsys.readouterr().out)
    assert system["os"] == "ubuntu2404" and len(system["packages"]) == 1 and "dgx01" in system["nodes"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- 1", "has no variables"),
        ("base_apt_repositories: {}", "ok"),
        ("base_apt_repositories: [{name: nv, url: x}]", "nv lacks suite, components"),
        ("base_dnf_repositories: [{name: nv, url: 'http://{{ x }}'}]", "has a template in it"),
        (": : {", "can't be read (not YAML)"),
    ],
)
def test_repositories_that_are_none(served, capsys, text, sentence):
    folder, _ = served
    stack = folder / "Pulumi.staging.yaml"
    declared = (REPOSITORY / "stacks/Pulumi.staging.yaml").read_text()
    stack.write_text(declared.replace('driver: "580"', "driver: 580.95.05"))
    assert main(["lock", str(stack)]) == 0
    (folder / "r.yml").write_text(text)
    code = main(["mirror", str(stack), "--repositories", str(folder / "r.yml")])
    assert (code, True) == (3, True) if sentence == "ok" else sentence in capsys.readouterr().err and code == 2
