"""What a rented node asks of Azure, for ironburst-join, ironburst-dead-man and ironburst-notice: its metadata service
(IMDS), and Key Vault with the token of its managed identity. Every call is one try. Python 3.9.
"""

import base64
import email.utils
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request

SERVICE = os.environ.get("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://169.254.169.254").rstrip("/")
VAULTS = os.environ.get("AZURE_KEYVAULT_URL")  # of a stand-in, which has each vault under its name
SCHEME = "azure-keyvault"
TIMEOUT_S = 5.0
FIRST_S = 150.0  # the first question for scheduled events switches them on, which takes up to two minutes
LOOK_S = 1.0  # between two of them, as its page advises: a notice of spot is half a minute
BEFORE_S = 900.0  # an event that is further off is no notice yet: some come days ahead
INSTANCE, TOKEN, EVENTS = "2021-02-01", "2018-02-01", "2020-07-01"  # versions
TAKEN = {"Preempt": "preempted", "Terminate": "terminated", "Redeploy": "redeploy", "Reboot": "reboot"}
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy reaches it


class CloudError(Exception):
    """What an API answered; one sentence."""


def metadata(path, version, timeout_s=TIMEOUT_S, **query):
    """An answer of the metadata service, as its JSON. Raises OSError."""
    asked = urllib.parse.urlencode({"api-version": version, **query})
    request = urllib.request.Request(f"{SERVICE}/metadata/{path}?{asked}", headers={"Metadata": "true"})
    with _DIRECT.open(request, timeout=timeout_s) as response:
        text = response.read().decode()
    try:
        return json.loads(text)
    except ValueError:
        raise OSError(f"what answers at {SERVICE} isn't Azure's metadata service") from None


def _self(read):
    """`read` of what the service says of this instance. Raises OSError, also if somebody else answers there."""
    said = metadata("instance", INSTANCE)
    try:
        return read(said["compute"], said["network"])
    except (LookupError, TypeError, AttributeError, ValueError):
        raise OSError(f"what answers at {SERVICE} isn't Azure's metadata service") from None


def launch():
    """(user data, place among the launch's nodes: the number at the end of its name). Raises OSError."""
    return _self(lambda its, _: (base64.b64decode(its["userData"]).decode(), its["name"].rpartition("-")[2]))


def instance():
    """(id, zone, address) of this instance; the id is GROUP/NAME/VMID, for names are used again. Raises OSError."""

    def read(its, network):
        its_id = "/".join((its["resourceGroupName"].lower(), its["name"], its["vmId"].lower()))
        zone = f"{its['location']}-{its['zone']}" if its["zone"] else its["location"]
        return [its_id, zone, network["interface"][0]["ipv4"]["ipAddress"][0]["privateIpAddress"]]

    return _self(read)


def secret(name, region):
    """What a secret holds, of VAULT/NAME: text; or bytes, of a file that the Azure CLI has put there in base64. Raises
    CloudError or OSError.
    """
    del region  # of no account: a vault's name is the world's
    vault, _, its_name = name.partition("/")
    address = f"{VAULTS}/{vault}" if VAULTS else f"https://{vault}.vault.azure.net"
    url = f"{address}/secrets/{its_name}?api-version=7.4"
    token = metadata("identity/oauth2/token", TOKEN, resource="https://vault.azure.net")["access_token"]
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            held = json.load(response)
    except urllib.error.HTTPError as error:
        said = re.sub(r"\s+", " ", error.read(2000).decode(errors="replace"))
        raise CloudError(f"HTTP {error.code} for GET {url}: {said}") from None
    in_base64 = (held.get("tags") or {}).get("file-encoding") == "base64"
    return base64.b64decode(held["value"]) if in_base64 else held["value"]


def end():
    """Nothing: no node may delete another. What powers off is paid for until the subscription's workflow deletes it,
    within minutes (docs/adr/0134).
    """


def notice(seen):
    """(why Azure takes this instance back, or empty; for the next call), after some seconds if `seen`. An event of a
    scale set may be of another machine; one that freezes it for some seconds is none. None is acknowledged: that is so
    for all machines of an event, and this one is deleted as soon as its jobs are off it. Raises OSError.
    """
    if seen:
        time.sleep(LOOK_S)
    said = metadata("scheduledevents", EVENTS, timeout_s=TIMEOUT_S if seen else FIRST_S)
    mine = [event for event in said["Events"] if event["EventType"] in TAKEN]
    if mine:
        name = _self(lambda its, _: its["name"].lower())
        for event in mine:
            if name in [each.lower() for each in event["Resources"]] and _is_near(event):
                return TAKEN[event["EventType"]], "asked"
    return "", "asked"


def _is_near(event):
    """One that has begun says no time."""
    begins = event.get("NotBefore")
    return not begins or email.utils.parsedate_to_datetime(begins).timestamp() - time.time() < BEFORE_S
