"""From a lease that is written down to one whose instance exists: power_up, then the intent, then the cloud call.

Every step can be repeated: a step is taken from what the ledger says and what
is observed, and is written down after it.
"""

from __future__ import annotations

import json
from dataclasses import asdict

from ironburst import node_states
from ironburst.controller import cool_downs, records
from ironburst.controller.launch_request import launch_request
from ironburst.controller.records import IntentRow, LaunchRow, LeaseRow, Place
from ironburst.controller.site import Site
from ironburst.ports import (
    CloudError,
    Instance,
    InsufficientCapacity,
    LaunchRequest,
    Node,
    Observation,
    OutcomeUnknown,
    QuotaReached,
    Refused,
    TokenMismatch,
)

_NEVER_ARRIVED_S = 600.0  # an unanswered launch that the cloud doesn't show by then didn't happen
_LONGEST_RETRY_S = 60.0
_QUOTA_S = 3600.0


def step(site: Site, launch: LaunchRow, leases: list[LeaseRow], observation: Observation) -> bool:
    """Take the next step of an early launch, if it can be taken. Whether one was taken."""
    state = leases[0].state
    if state == records.REQUESTED:
        return _repeat(site, launch, leases, observation)
    if not _needed(site, leases, observation):
        return leave(site, leases, "its jobs need it no more")
    nodes = [node for lease in leases if (node := observation.node(lease.node))]
    if len(nodes) < len(leases):
        return leave(site, leases, "the scheduler doesn't know its nodes")
    if state == records.INTENDED:
        site.scheduler.put_permit(launch.nodes)
        _power_up(site, nodes)
        site.ledger.update(leases, site.now, state=records.POWERING)
        return True
    if all(node.has("POWERING_UP") for node in nodes):
        return _request(site, launch, leases)
    if site.now - leases[0].changed_s > launch.boot_s:
        return leave(site, leases, "the scheduler never powered its nodes up")
    if lost := [node for node in nodes if node.launchable]:  # sent back: its permit wasn't seen
        site.scheduler.put_permit(launch.nodes)
        _power_up(site, lost)
    return False


def _power_up(site: Site, nodes: list[Node]) -> None:
    if names := [node.name for node in nodes if not node_states.powering_up(node.states)]:
        site.scheduler.power_up(names)


def _needed(site: Site, leases: list[LeaseRow], observation: Observation) -> bool:
    return any((job := observation.job(id)) and job.pending for lease in leases for id in site.ledger.jobs_of(lease.id))


def _request(site: Site, launch: LaunchRow, leases: list[LeaseRow]) -> bool:
    """A new attempt in the next zone: into the ledger, then to the cloud."""
    done = site.ledger.intents(launch.id)
    left = [zone for zone in launch.zones if zone not in {intent.zone for intent in done}]
    if not left:
        why = "; ".join(f"{intent.zone}: {intent.code or intent.error}" for intent in done)
        return leave(site, leases, f"no capacity ({why})")
    attempt = len(done) + 1
    request = launch_request(site.document, launch, left[0], attempt)
    if request is None:
        return leave(site, leases, f"zone {left[0]} of pool {launch.pool} is not declared any more")
    site.ledger.add_intent(request.token, launch.id, attempt, left[0], asdict(request), site.now)
    site.event("requested", f"{request.count} {launch.market} in {left[0]}, attempt {attempt}", launch=launch.id)
    return _ask(site, launch, site.ledger.leases_of(launch.id), site.ledger.intents(launch.id)[-1])


def _repeat(site: Site, launch: LaunchRow, leases: list[LeaseRow], observation: Observation) -> bool:
    """An intent without an answer: we died over it, or the cloud gave none.
    Repeat it unchanged while it is still wanted.
    """
    asked = reversed(site.ledger.intents(launch.id))
    intent = next(intent for intent in asked if intent.state in ("open", "unknown"))
    if intent.retry_s > site.now:
        return False
    if not _needed(site, leases, observation):
        return _look(site, launch, leases, intent)
    return _ask(site, launch, leases, intent)


def _ask(site: Site, launch: LaunchRow, leases: list[LeaseRow], intent: IntentRow) -> bool:
    """Ask the cloud, with exactly what the intent says; then write down what it answered."""
    try:
        instances = site.cloud.launch(LaunchRequest(**json.loads(intent.request)))
    except OutcomeUnknown as error:
        return _unknown(site, launch, leases, intent, error)
    except TokenMismatch as error:  # the first launch may live: only instances with this token tell
        site.event("trouble", f"the token of {intent.zone} was used with other parameters: {error}", launch=launch.id)
        return _unknown(site, launch, leases, intent, error)
    except InsufficientCapacity as error:
        here = [Place(launch.pool, intent.zone, launch.market, len(launch.nodes))]
        return _refused(site, launch, leases, intent, error, here, site.document.burst.cool_down_s)
    except QuotaReached as error:
        everywhere = [Place(launch.pool, zone, launch.market, len(launch.nodes)) for zone in launch.zones]
        return _refused(site, launch, leases, intent, error, everywhere, _QUOTA_S)
    except Refused as error:
        text = f"pool {launch.pool} ({launch.market}) is closed until it is cured: {error}"
        site.event("needs_a_person", text, launch=launch.id)
        everything = [Place(launch.pool, zone, launch.market, 1) for zone in launch.zones]
        return _refused(site, launch, leases, intent, error, everything, None)
    _adopt(site, launch, leases, intent, instances)
    return True


def _other(launch: LaunchRow, instances: list[Instance]) -> str:
    """What was launched instead of what was asked for; empty: all is as asked, or not told."""
    for instance in instances:
        for what, got, asked in (
            ("type", instance.instance_type, launch.instance_type),
            ("image", instance.image_id, launch.image_id),
        ):
            if got and got != asked:
                return f"{instance.id} has {what} {got}, asked for was {asked}"
    return ""


def _adopt(site: Site, launch: LaunchRow, leases: list[LeaseRow], intent: IntentRow, instances: list[Instance]) -> None:
    """The instances exist: node names go by the launch index, as on the nodes themselves."""
    by_index = {instance.index: instance for instance in instances}
    of = {lease.node: by_index[launch.nodes.index(lease.node)] for lease in leases}
    now = site.now
    with site.ledger.transaction():
        site.ledger.answer_intent(intent.token, "answered", now)
        for lease in leases:
            instance = of[lease.node]
            site.instances.setdefault(instance.id, instance)
            site.ledger.update(
                [lease],
                now,
                state=records.LAUNCHED,
                instance_id=instance.id,
                # it may have run since it was asked for first, and is kept for as long as was promised from then on
                from_s=intent.made_s,
                committed_until_s=lease.committed_until_s + intent.made_s - lease.made_s,
            )
        site.ledger.reopen(launch.pool, intent.zone, launch.market)
        names = ", ".join(f"{node} = {instance.id}" for node, instance in of.items())
        site.event("launched", f"{names} ({launch.market}, {intent.zone})", launch=launch.id)
        if other := _other(launch, instances):
            _not_as_asked(site, launch, other)


def _not_as_asked(site: Site, launch: LaunchRow, other: str) -> None:
    """Its template or image was changed behind us: end it at once, and close the pool until somebody looked."""
    for zone in launch.zones:
        cool_downs.close(site.ledger, Place(launch.pool, zone, launch.market, 1), None, other, site.now, launch.serial)
    text = f"pool {launch.pool} ({launch.market}) is closed until it is cured: {other}"
    site.event("needs_a_person", text, launch=launch.id)
    leave(site, site.ledger.leases_of(launch.id), other)


def _refused(
    site: Site,
    launch: LaunchRow,
    leases: list[LeaseRow],
    intent: IntentRow,
    error: CloudError,
    places: list[Place],
    seconds: float | None,
) -> bool:
    """A definite no: nothing was started.
    Close the places (None: until somebody reopens them), and go on with the zones that are left.
    """
    now, why = site.now, error.code or str(error)
    with site.ledger.transaction():
        site.ledger.answer_intent(intent.token, "refused", now, code=error.code, error=str(error))
        for place in places:
            cool_downs.close(site.ledger, place, seconds, why, now, launch.serial)
        site.ledger.update(leases, now, state=records.POWERING)
        site.event("refused", f"{launch.market} in {intent.zone}: {error}", launch=launch.id)
    if len(places) > 1 or seconds is None:  # the other zones are closed with it
        return leave(site, site.ledger.leases_of(launch.id), f"refused: {why}")
    return True


def _unknown(site: Site, launch: LaunchRow, leases: list[LeaseRow], intent: IntentRow, error: CloudError) -> bool:
    retry = site.now + min(2.0 ** min(intent.tries, 10), _LONGEST_RETRY_S)
    site.ledger.answer_intent(intent.token, "unknown", site.now, code=error.code, error=str(error), retry_s=retry)
    site.event("unknown", f"{launch.market} in {intent.zone}: {error}; to be repeated unchanged", launch=launch.id)
    if isinstance(error, TokenMismatch):
        return _look(site, launch, leases, intent)
    return False


def _look(site: Site, launch: LaunchRow, leases: list[LeaseRow], intent: IntentRow) -> bool:
    """Look for instances of a token that is not to be repeated any more."""
    instances = site.cloud.by_token(intent.token)
    if len(instances) == len(leases) and any(instance.alive for instance in instances):
        _adopt(site, launch, leases, intent, instances)
        return True
    if site.now - intent.made_s > _NEVER_ARRIVED_S:
        with site.ledger.transaction():
            site.ledger.answer_intent(
                intent.token, "refused", site.now, code="NeverArrived", error="no instance with its token appeared"
            )
            site.ledger.update(leases, site.now, state=records.POWERING)
        return True
    return False


def leave(site: Site, leases: list[LeaseRow], reason: str) -> bool:
    """Give leases up; the next step abandons their nodes and ends their instances."""
    if leases:
        with site.ledger.transaction():
            site.ledger.update(leases, site.now, state=records.LEAVING, end_reason=reason)
            nodes = ", ".join(lease.node for lease in leases)
            site.event("given_up", f"{nodes}: {reason}", launch=leases[0].launch)
    return bool(leases)
