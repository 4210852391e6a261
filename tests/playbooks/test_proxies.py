"""The proxy that a site declares: what it becomes for apt, dnf, the container daemons and the roles' own downloads."""

import configparser
import http.server
import subprocess
import threading

import jinja2
import programs
import pytest
import yaml
from ansible.errors import AnsibleFilterError
from programs import PLAYBOOKS

filters = programs.load("plugins/filter/proxies.py")
PROXY = {"http": "http://proxy.example.org:3128", "https": "http://proxy.example.org:3129", "no_proxy": [".inside"]}


def render(role, name, **variables):
    environment = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True)
    environment.filters |= filters.FilterModule().filters() | {"hash": lambda text, _: text}
    return environment.from_string((PLAYBOOKS / "roles" / role / "templates" / name).read_text()).render(variables)


def test_programs_get_both_spellings_and_never_ask_for_themselves():
    found = filters.proxy_environment(PROXY)
    assert found["https_proxy"] == found["HTTPS_PROXY"] == "http://proxy.example.org:3129"
    assert found["NO_PROXY"] == "localhost,127.0.0.1,::1,.inside" and len(found) == 6
    assert filters.proxy_environment({}) == {} == filters.proxy_environment({"no_proxy": ["a"]})


@pytest.mark.parametrize("url", ["http://me:word@proxy:3128", "proxy:3128", "http://proxy/path", 'http://p"roxy'])
def test_what_is_no_address_is_refused_and_not_repeated(url):
    with pytest.raises(AnsibleFilterError, match=r"base_proxy\.http is not a proxy's address") as refused:
        filters.proxy_environment({"http": url})
    assert "word" not in str(refused.value).partition(":")[0]


def test_a_domain_in_no_proxy_is_all_hosts_below_it():
    proxy = {"no_proxy": [".inside", "mirror.example.org"]}
    hosts = ("http://a.inside/x", "http://mirror.example.org/x", "http://notmirror.example.org/", "http://inside.org/")
    assert [filters.is_direct(url, proxy) for url in hosts] == [True, True, False, False]
    assert filters.is_direct("http://anything/", {"no_proxy": ["*"]})


class Recorder(http.server.BaseHTTPRequestHandler):
    """stand-in: a proxy and a mirror in one, that has nothing; a proxy is asked for whole addresses"""

    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_error(404)

    def log_message(self, *_):
        pass


@pytest.fixture
def recorder():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.asked = []
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_apt_asks_the_proxy_but_not_for_the_mirror(recorder, tmp_path):
    """The real apt."""
    here = f"http://127.0.0.1:{recorder.server_port}"
    proxy = {"http": here, "no_proxy": ["127.0.0.1"]}
    (tmp_path / "apt.conf").write_text(
        render("base", "proxy.conf.j2", base_proxy=proxy, base_apt_repositories=[{"url": f"{here}/mirror"}])
    )
    text = f"deb [trusted=yes] {here}/mirror /\ndeb [trusted=yes] http://archive.invalid/debian x main\n"
    (tmp_path / "sources.list").write_text(text)
    for folder in ("lists/partial", "cache/archives/partial"):
        (tmp_path / folder).mkdir(parents=True)
    options = {
        "Dir::Etc::sourcelist": tmp_path / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": tmp_path / "lists",
        "Dir::Cache": tmp_path / "cache",
        "APT::Sandbox::User": "root",
        "Acquire::Retries": "0",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    environment = {"PATH": "/usr/bin:/bin", "APT_CONFIG": str(tmp_path / "apt.conf")}
    subprocess.run(["apt-get", *words, "update"], env=environment, capture_output=True, timeout=60)
    assert "/mirror/InRelease" in recorder.asked, recorder.asked
    assert "http://archive.invalid/debian/dists/x/InRelease" in recorder.asked
    assert not any(path.startswith("http://127.0.0.1") for path in recorder.asked)


def test_a_repository_of_dnf_that_is_reached_directly_says_so():
    def written(url, proxy):
        parser = configparser.ConfigParser()
        repository = {"name": "nvidia", "url": url, "key_url": "k"}
        parser.read_string(render("base", "ironburst.repo.j2", base_repository=repository, base_proxy=proxy))
        return dict(parser["ironburst-nvidia"])

    assert written("http://mirror.inside/cuda", PROXY)["proxy"] == "_none_"
    assert "proxy" not in written("http://mirror.example.org/cuda", PROXY)
    assert "proxy" not in written("http://mirror.inside/cuda", {})


@pytest.mark.parametrize("daemon", ["containerd", "docker"])
def test_daemons_get_it_in_their_unit_and_nothing_without_one(daemon):
    lines = render("container_runtime", f"{daemon}.service.j2", base_proxy=PROXY).splitlines()
    assert 'Environment="HTTPS_PROXY=http://proxy.example.org:3129"' in lines and lines[-1].startswith("Environment=")
    assert "Environment" not in render("container_runtime", f"{daemon}.service.j2")


def test_whatever_a_role_downloads_it_downloads_through_the_proxy():
    def tasks(value):
        for task in value or []:
            yield task
            for inner in ("block", "rescue", "always"):
                yield from ({"environment": task.get("environment"), **each} for each in tasks(task.get(inner)))

    files = [*PLAYBOOKS.glob("roles/*/tasks/*.yml")]
    found = [task for file in files for task in tasks(yaml.safe_load(file.read_text()))]
    downloads = [task for task in found if "ansible.builtin.get_url" in task or task.get("name") == "Environments"]
    assert len(downloads) >= 5
    for task in downloads:
        assert "proxy_environment" in (task.get("environment") or ""), task["name"]
