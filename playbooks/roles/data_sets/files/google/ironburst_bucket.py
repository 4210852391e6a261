"""Cloud Storage, for ironburst-data: what lies in a bucket, by its JSON API, read with the rights of the instance's
service account. Python 3.6.
"""

import contextlib
import http.client
import json
import os
import random
import time
import urllib.parse
import urllib.request

KIND, SCHEME = "gs", "gs://"
ELSE = ""
"""what else to do where copying takes too long"""
SERVICE = "http://" + os.environ.get("GCE_METADATA_HOST", "169.254.169.254")
STORAGE = os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", "https://storage.googleapis.com/storage/v1/")
TIMEOUT_S = 60
TRIES = 10  # of a request that is to be repeated
FIRST_S, LONGEST_S = 1.0, 32.0  # between two of them
AGAIN = (408, 429, 500, 502, 503, 504)  # what Google's own clients ask again
SPARE_S = 60  # before its end a token is asked for anew
_FLAVOR = "Metadata-Flavor"


class Refused(Exception):
    """What Cloud Storage has answered; one sentence."""


class Broken(Exception):
    """An answer that breaks off, or none; one sentence. No OSError: those are the node's own disks."""


def answered(error):
    """Whether Cloud Storage has answered: then it was asked often enough."""
    return isinstance(error, Refused)


def token():
    """(a token of the instance's service account, when it is to be asked for anew: monotonic). Raises Broken."""
    url = SERVICE + "/computeMetadata/v1/instance/service-accounts/default/token"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={_FLAVOR: "Google"}), timeout=10) as answer:
            if answer.headers.get(_FLAVOR) != "Google":
                raise Broken("what answers at {} isn't Google's metadata server".format(SERVICE))
            held = json.loads(answer.read().decode())
    except (OSError, ValueError) as error:
        raise Broken("the metadata server at {} gives no token: {}".format(SERVICE, error)) from None
    return held["access_token"], time.monotonic() + held["expires_in"] - SPARE_S


class Body:
    """What comes, to be read in blocks."""

    def __init__(self, answer):
        self._answer = answer

    def read(self, most):
        """Raises Broken."""
        try:
            return self._answer.read(most)
        except (OSError, http.client.HTTPException) as error:
            raise Broken("the answer breaks off: {}: {}".format(type(error).__name__, error)) from None


class Bucket:
    """One connection, for one request at a time; a token is renewed before it ends, and where it is refused."""

    def __init__(self, _region, name):
        self.name, self._line, self._answer, self._token, self._until = name, None, None, "", 0.0

    def objects(self, prefix):
        """(name, generation, bytes) of each below a prefix. Raises Refused or Broken."""
        asked = {"prefix": prefix, "fields": "nextPageToken,items(name,generation,size)"}
        while True:
            page = json.loads(Body(self._ask("o?" + urllib.parse.urlencode(asked), {})).read(None).decode())
            for each in page.get("items", []):
                yield each["name"], each["generation"], int(each["size"])
            if "nextPageToken" not in page:
                return
            asked["pageToken"] = page["nextPageToken"]

    def read(self, key, version, offset, length):
        """What lies there of an object in that generation, to be read in blocks. Raises Refused or Broken."""
        path = "o/{}?alt=media&ifGenerationMatch={}".format(urllib.parse.quote(key, safe=""), version)
        asked = {"Accept-Encoding": "gzip"}  # else what is stored compressed comes unpacked, and all of it
        if length:
            asked["Range"] = "bytes={}-{}".format(offset, offset + length - 1)
        answer = self._ask(path, asked)
        offered = answer.getheader("Content-Length", "an unknown number of")
        if offered != str(length):
            self._hang_up()
            raise Refused("{} bytes are offered where {} were listed".format(offered, length))
        return Body(answer)

    def _ask(self, path, headers):
        """The answer to a GET, asked again while Cloud Storage says so. Raises Refused or Broken."""
        renewed, attempt = False, 1
        while True:
            try:
                answer = self._once(path, headers)
                if answer.status in (200, 206):
                    return answer
                text = answer.read().decode(errors="replace")
            except (OSError, http.client.HTTPException) as error:
                self._hang_up()
                raise Broken("no answer of {}: {}: {}".format(STORAGE, type(error).__name__, error)) from None
            if answer.status == 401 and not renewed:
                renewed, self._until = True, 0.0
                continue
            if answer.status not in AGAIN or attempt == TRIES:
                raise Refused(said(answer.status, text))
            time.sleep(pause(attempt, answer.getheader("Retry-After", "")))
            attempt += 1

    def _once(self, path, headers):
        if time.monotonic() >= self._until:
            self._token, self._until = token()
        at = urllib.parse.urlsplit("{}b/{}/{}".format(STORAGE, self.name, path))
        if self._line is None or self._left:
            self._hang_up()
            kind = http.client.HTTPConnection if at.scheme == "http" else http.client.HTTPSConnection
            self._line = kind(at.netloc, timeout=TIMEOUT_S)
        self._line.request(
            "GET", at.path + "?" + at.query, headers=dict(headers, Authorization="Bearer " + self._token)
        )
        self._answer = self._line.getresponse()
        return self._answer

    @property
    def _left(self):
        """Whether something of the last answer was never read."""
        return self._answer is not None and not self._answer.isclosed()

    def _hang_up(self):
        if self._line is not None:
            self._line.close()
        self._line = self._answer = None


def pause(attempt, retry_after):
    """Seconds until a request is repeated: what the answer asks for, else twice as long each time."""
    if retry_after.isdigit():
        return min(float(retry_after), LONGEST_S)
    return min(FIRST_S * 2 ** (attempt - 1), LONGEST_S) * random.uniform(0.5, 1.0)


def said(status, text):
    """An answer that is an error, for people."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        text = json.loads(text)["error"]["message"]
    text = "HTTP {}: {}".format(status, " ".join(text.split())[:1000])
    if status == 412:
        return text + " It was changed after it was listed."
    if "requester pays" in text:
        return text + " Nodes read no bucket whose readers pay: copy it into one whose owner does."
    return text
