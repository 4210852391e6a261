"""The wire server at 168.63.129.16, to which a machine reports that it is up: without that its making fails in the end
(OSProvisioningTimedOut). Two calls, as cloud-init makes them (sources/helpers/azure.py): GET /machine/?comp=goalstate,
then POST /machine?comp=health with the ids of the goal state and <State>Ready</State>.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from lab.azure.metadata import Metadata
from lab.served import Answering, Server

_GOAL = """<?xml version="1.0" encoding="utf-8"?><GoalState><Version>2012-11-30</Version><Incarnation>1</Incarnation>
<Container><ContainerId>{id}</ContainerId><RoleInstanceList><RoleInstance><InstanceId>{id}</InstanceId></RoleInstance>
</RoleInstanceList></Container></GoalState>"""


class WireServer(Server):
    """Who asks is known as the metadata service knows it. `cloud`: whose machines come up so."""

    def __init__(self, cloud: Any, metadata: Metadata, address: tuple[str, int]):
        self.cloud, self.metadata = cloud, metadata
        super().__init__(address, _Handler)

    def answer(self, asked: str, who: str, body: bytes) -> tuple[int, str]:
        """Status and text. `asked`: the verb and the component."""
        with self.cloud.settled():
            vm = self.metadata.who(who)
            if vm is None:
                return 403, ""
            its_id = vm.properties["vmId"]
            if asked == "GET comp=goalstate":
                return 200, _GOAL.format(id=its_id)
            if asked != "POST comp=health":
                return 400, ""
            said = {each.tag: each.text for each in ElementTree.fromstring(body).iter()}
            if (said.get("ContainerId"), said.get("InstanceId"), said.get("State")) != (its_id, its_id, "Ready"):
                return 400, ""
            self.cloud.reported(vm)
            return 200, ""


class _Handler(Answering):
    server: WireServer

    def _do(self) -> None:
        asked = f"{self.command} {urlsplit(self.path).query}" if self.headers.get("x-ms-version") else ""
        status, text = self.server.answer(asked, self.client_address[0], self.body())
        self.send(status, text.encode(), {"Content-Type": "text/xml; charset=utf-8"})

    do_GET = do_POST = _do
