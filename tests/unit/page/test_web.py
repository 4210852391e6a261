"""The page over HTTP: who may ask, and how."""

import http.client
import json

import pytest

TOKEN = "correct-horse-battery-staple"


def ask(port, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer, answer.read().decode()


def test_the_page_its_fragment_and_a_jobs_story(serving, site):
    port, _ = serving()
    answer, text = ask(port)
    assert answer.status == 200 and "What is broken" in text and "<!doctype html>" in text
    answer, text = ask(port, "/now?q=eval-large")
    assert answer.status == 200 and "<!doctype" not in text and "eval-large" in text and "notebook" not in text
    answer, text = ask(port, f"/jobs/{site.world.waits}")
    assert answer.status == 200 and "eval-large, ben" in text and "rented p5" in text
    for unknown in ("nobody", "99999", "9" * 400, "8_1"):
        assert ask(port, f"/jobs/{unknown}")[0].status == 404


def test_it_leads_to_grafana_and_prometheus_where_they_are_declared(site):
    assert ">Grafana<" not in site.source().page("") and ">Prometheus<" not in site.source().page("")
    path = site.folder / "lab.json"
    declared = json.loads(path.read_text())
    grafana, prometheus = 'https://grafana.example.org/d/x?a="1"', "http://127.0.0.1:9090"
    path.write_text(json.dumps(declared | {"monitoring": {"grafana": grafana, "url": prometheus}}))
    for page in (site.source().page(""), site.source().file()):
        assert '<a href="https://grafana.example.org/d/x?a=&#34;1&#34;">Grafana</a>' in page
        assert f'<a href="{prometheus}">Prometheus</a>' in page
    path.write_text(json.dumps(declared | {"monitoring": {"grafana": "javascript:alert(1)"}}))
    assert "javascript:" not in site.source().page("")


def test_what_every_answer_says_to_the_browser(serving):
    port, _ = serving(TOKEN)
    for path in ("/", f"/?token={TOKEN}", "/nothing"):
        answer, _ = ask(port, path, Authorization=f"Bearer {TOKEN}")
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert len(answer.headers.get_all("Content-Security-Policy")) == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(serving, method):
    port, _ = serving()
    for path in ("/", "/now", "/jobs/1"):
        assert ask(port, path, method)[0].status == 405


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8642", "127.0.0.1.evil.example", "", "[::2]:8642"])
def test_on_loopback_only_its_own_names_are_answered(serving, host):
    port, _ = serving()
    answer, text = ask(port, Host=host)
    assert answer.status == 421 and "eval-large" not in text


@pytest.mark.parametrize("host", ["localhost:9000", "LOCALHOST", "127.0.0.1", "[::1]:8642"])
def test_through_a_tunnel_it_has_any_port(serving, host):
    assert ask(serving()[0], Host=host)[0].status == 200


def test_with_a_token_nobody_else_is_answered(serving):
    port, _ = serving(TOKEN, local=False)
    for path, headers in (
        ("/", {}),
        ("/now", {"Authorization": "Bearer wrong"}),
        ("/jobs/1", {"Authorization": f"Basic {TOKEN}"}),
        ("/", {"Cookie": f"ironburst={TOKEN}"}),  # the cookie isn't the token
        ("/?token=", {}),
        ("/?token=wrong", {}),
        ("/?token=%ff%fe", {}),
        ("/", {"Authorization": "Bearer \xff"}),
    ):
        answer, text = ask(port, path, **headers)
        assert answer.status == 401 and "eval-large" not in text and TOKEN not in text
    assert ask(port, Authorization=f"bearer {TOKEN}", Host="any.example")[0].status == 200


def test_a_token_in_the_address_is_taken_once_and_leaves_it(serving):
    port, _ = serving(TOKEN, local=False)
    answer, _ = ask(port, f"/?q=ben&token={TOKEN}")
    assert answer.status == 303 and answer.headers["Location"] == "/?q=ben"
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower() and TOKEN not in cookie
    answer, text = ask(port, answer.headers["Location"], Cookie=cookie.partition(";")[0])
    assert answer.status == 200 and "eval-large" in text
    assert ask(port, f"//evil.example/?token={TOKEN}")[0].headers["Location"].startswith("/evil.example")
