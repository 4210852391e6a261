"""What a rented node asks of Google Cloud, for ironburst-join, ironburst-dead-man and ironburst-notice: its metadata
server, and two APIs with the credentials of its service account. Every call is one try. Python 3.9.
"""

import base64
import json
import os
import re
import urllib.error
import urllib.request

SERVICE = "http://" + os.environ.get("GCE_METADATA_HOST", "169.254.169.254")
COMPUTE = os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", "https://compute.googleapis.com/compute/v1/")
SECRETS = os.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER", "https://secretmanager.googleapis.com/")
SCHEME = "google-secretmanager"
TIMEOUT_S = 5.0
WAIT_S = 60  # of a request that waits for a change
_FLAVOR = "Metadata-Flavor"


class CloudError(Exception):
    """What an API answered; one sentence."""


def metadata(path, timeout_s=TIMEOUT_S):
    """(an answer of the metadata server, its etag). Raises OSError, also if somebody else answers there."""
    request = urllib.request.Request(f"{SERVICE}/computeMetadata/v1/{path}", headers={_FLAVOR: "Google"})
    with urllib.request.urlopen(request, timeout=timeout_s) as response:
        if response.headers.get(_FLAVOR) != "Google":
            raise OSError(f"what answers at {SERVICE} isn't Google's metadata server")
        return response.read().decode(), response.headers.get("ETag", "")


def launch():
    """(user data, place among the launch's nodes: the number at the end of its name). Raises OSError."""
    return metadata("instance/attributes/user-data")[0], metadata("instance/name")[0].rpartition("-")[2]


def instance():
    """(id, zone, address) of this instance; the id is ZONE/NAME/NUMBER, for names are used again. Raises OSError."""
    zone = metadata("instance/zone")[0].rpartition("/")[2]
    name, number, address = (metadata(f"instance/{key}")[0] for key in ("name", "id", "network-interfaces/0/ip"))
    return [f"{zone}/{name}/{number}", zone, address]


def secret(name, region):
    """What a secret holds, of PROJECT/NAME: text, or bytes that are none. Raises CloudError or OSError."""
    del region  # of no account: a secret's name is its project's
    project, _, its_name = name.partition("/")
    url = f"{SECRETS}v1/projects/{project}/secrets/{its_name}/versions/latest:access"
    held = base64.b64decode(_call("GET", url)["payload"]["data"])
    try:
        return held.decode()
    except UnicodeDecodeError:
        return held


def end():
    """Have this instance deleted, and its disk with it: one that only powers off is kept, and its disk is paid for. By
    its name, which the right to do so is bound to; it is its own as long as it runs. Raises CloudError or OSError.
    """
    project, its_id = metadata("project/project-id")[0], instance()[0]
    zone, name, _ = its_id.split("/")
    try:
        _call("DELETE", f"{COMPUTE}projects/{project}/zones/{zone}/instances/{name}")
    except CloudError as error:
        if "resourceNotReady" not in str(error):  # else its end is under way
            raise


def notice(etag):
    """(why Google takes this instance back, or empty; etag of that answer), as soon as something changes after `etag`,
    or in a minute. Raises OSError.
    """
    wait = f"&wait_for_change=true&timeout_sec={WAIT_S}&last_etag={etag}" if etag else ""
    text, etag = metadata("instance/?recursive=true" + wait, WAIT_S + TIMEOUT_S)
    said = json.loads(text)
    if said.get("preempted") == "TRUE":
        return "preempted", etag
    event = str(said.get("maintenanceEvent", "NONE"))
    return ("maintenance" if event.startswith("TERMINATE") else ""), etag


def _call(verb, url):
    token = json.loads(metadata("instance/service-accounts/default/token")[0])["access_token"]
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"}, method=verb)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        said = re.sub(r"\s+", " ", error.read(2000).decode(errors="replace"))
        raise CloudError(f"HTTP {error.code} for {verb} {url}: {said}") from None
