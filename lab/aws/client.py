"""Client of the lab cloud's control endpoint; only the standard library. As a program, for callers outside the box:

nsenter ... python -m lab.aws.client POST /lab/interrupt '{"instance_id": "i-0123456789abcdef0", "notice_s": 20}'
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

URL = "http://127.0.0.1:5001"


class ControlFailed(Exception):
    """The endpoint refused or isn't there; the text is one sentence."""


def call(verb: str, path: str, body: dict[str, Any] | None = None, url: str = URL, timeout: float = 30.0) -> Any:
    """One call of lab/aws/control.py; returns its JSON answer or raises ControlFailed. `path`: or a whole URL."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(urllib.parse.urljoin(url, path), method=verb, data=data)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback: never through a proxy
    try:
        with opener.open(request, timeout=timeout) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        raise ControlFailed(json.load(error)["error"]) from None
    except OSError as error:
        raise ControlFailed(f"the lab's cloud doesn't answer at {url}: {error}; is the lab up?") from None


def wait_ready(seconds: float = 30.0, url: str = URL) -> None:
    """Return when the daemon serves; ControlFailed after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        try:
            call("GET", "/lab/health", url=url, timeout=2.0)
            return
        except ControlFailed:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)  # between two looks at the condition


def main(arguments: list[str]) -> int:
    if len(arguments) not in (2, 3):
        print(f"usage: python -m lab.aws.client VERB PATH [JSON]\n{__doc__}", file=sys.stderr)
        return 2
    try:
        body = json.loads(arguments[2]) if len(arguments) == 3 else None
        print(json.dumps(call(arguments[0], arguments[1], body), indent=1))
    except (ControlFailed, json.JSONDecodeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
