"""Filters over the proxy that a site declares (`base_proxy`: {http, https, no_proxy}; {} is none)."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ansible.errors import AnsibleFilterError

ALWAYS_DIRECT = ("localhost", "127.0.0.1", "::1")


def proxy_environment(proxy: dict) -> dict[str, str]:
    """The variables that programs read, in both spellings: curl takes http_proxy in small letters only. Empty without
    a proxy. Raises AnsibleFilterError for an address that is none, or that holds a password.
    """
    words = {f"{kind}_proxy": proxy[kind] for kind in ("http", "https") if proxy.get(kind)}
    for name, url in words.items():
        if not re.fullmatch(r"https?://[^/@\s\"'\\]+/?", url):
            cure = "write http://HOST:PORT; no user and no password, for everybody on a host may read it"
            # the address itself may hold the password
            raise AnsibleFilterError(f"base_proxy.{name.partition('_')[0]} is not a proxy's address: {cure}")
    for name in proxy.get("no_proxy", ()):
        if not re.fullmatch(r"[A-Za-z0-9.*:/_-]+", name):
            raise AnsibleFilterError(f"base_proxy.no_proxy has {name!r}: write hosts and domains, one an entry")
    if words:
        words["no_proxy"] = ",".join(dict.fromkeys([*ALWAYS_DIRECT, *proxy.get("no_proxy", ())]))
    return words | {name.upper(): value for name, value in words.items()}


def is_direct(url: str, proxy: dict) -> bool:
    """Whether `no_proxy` names the host of a URL, or a domain above it (`.example.org`, `example.org`); `*` is all."""
    host = urlsplit(url).hostname or ""
    names = [name.lstrip(".").lower() for name in proxy.get("no_proxy", ())]
    return any(name == "*" or host == name or host.endswith(f".{name}") for name in names)


def direct_hosts(proxy: dict, urls: list[str]) -> list[str]:
    """Hosts for which apt is told to ask no proxy: it knows hosts, no domains. Those of `urls`, and those named."""
    hosts = [urlsplit(url).hostname or "" for url in urls if is_direct(url, proxy)]
    named = [name for name in proxy.get("no_proxy", ()) if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", name)]
    return sorted({*hosts, *named} - {""})


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {"proxy_environment": proxy_environment, "is_direct": is_direct, "direct_hosts": direct_hosts}
