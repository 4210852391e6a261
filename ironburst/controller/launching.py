"""From a lease that is written down to one whose instance exists: power_up, then the intent, then the cloud call.

Every step can be repeated: a step is taken from what the ledger says and what
is observed, and is written down after it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from ironburst.burst import backoff
from ironburst.controller import (
    broken_pool,
    cool_downs,
    deadline_moves,
    lease_table,
    money,
    ownership,
    records,
    sightings,
    spending,
)
from ironburst.controller.launch_request import launch_request
from ironburst.controller.lease_table import OfLaunch
from ironburst.controller.records import CoolDownRow, IntentRow, LaunchRow, LeaseRow, Place
from ironburst.controller.site import Site
from ironburst.nodes import states as node_states
from ironburst.ports import (
    LAUNCHING,
    CloudError,
    Instance,
    InsufficientCapacity,
    LaunchRequest,
    Malformed,
    NeverUp,
    Node,
    Observation,
    OutcomeUnknown,
    QuotaReached,
    Refused,
    SchedulerError,
    TokenMismatch,
    TooExpensive,
    UnderWay,
)

_NEVER_ARRIVED_S = 600.0  # an unanswered launch that the cloud doesn't show by then didn't happen
_LONGEST_RETRY_S = 60.0
_WORKS_S = 10.0  # a launch at which the cloud works is looked at so often
_QUOTA_S = 3600.0
_REFUSED_S = 60.0  # rights are known everywhere within seconds; twice as long each time, up to an hour (burst.backoff)
_TOOK = 4.0  # a refusal that took long to come is asked for so many times later: others are asked for till then
_Wanted = tuple[list[LeaseRow], list[Node]]  # the leases of a launch, and which of its nodes are to be powered up
_UNNEEDED = "its jobs need it no more"
AT_ONCE = 6  # RunInstances calls side by side: at 3 s each as many as EC2 lets one account make (2 a second)


def steps(site: Site, launch: LaunchRow, observation: Observation) -> OfLaunch:
    """Take all steps that an early launch can take by itself. "ask": next is the cloud, with all that come so far."""
    before: list[LeaseRow] = []
    while (leases := _early(site, launch.id)) and leases != before:
        before, rule = leases, lease_table.rule(leases[0].state, _facts(site, launch, leases, observation))
        if rule.act == "ask":
            return "ask"
        if rule.act == "look":
            _look(site, launch, leases, _open(site, launch))
        if rule.act == "adopt":
            intent = _open(site, launch)
            _adopt(site, launch, leases, intent, _shown(site, intent))
            leases = site.ledger.leases_of(launch.id)
        if rule.to == records.LEAVING:
            leave(site, leases, rule.why.format(unneeded=_UNNEEDED if site.halt is None else site.halt.text))
    return ""


def _facts(site: Site, launch: LaunchRow, leases: list[LeaseRow], observation: Observation) -> frozenset[str]:
    nodes = [node for lease in leases if (node := observation.node(lease.node))]
    intent = _open(site, launch) if leases[0].state == records.REQUESTED else None
    return lease_table.those(
        unknown=len(nodes) < len(leases),
        powering_up=all(node.has("POWERING_UP") for node in nodes),
        overdue=site.now - leases[0].changed_s >= launch.boot_s,
        jobs=any(observation.on(lease.node) for lease in leases),
        works=any(observation.on(node.name) and sightings.answers(node) for node in nodes),
        unneeded=not _needed(site, leases, observation),
        # of a part of a gang the rest will show
        shown=intent is not None and _whole(site, launch, intent),
        not_yet=intent is not None and intent.retry_s > site.now,
    )


def power_up(site: Site, observation: Observation) -> None:
    """The first step of all launches that are only written down: one call of the scheduler for all of them; also for
    nodes that were sent back, because their permit wasn't seen.
    """
    early: dict[str, list[LeaseRow]] = {}
    for lease in site.ledger.leases():
        if lease.state in (records.INTENDED, records.POWERING):
            early.setdefault(lease.launch, []).append(lease)
    wanted: list[_Wanted] = []
    for leases in early.values():
        nodes = [node for lease in leases if (node := observation.node(lease.node))]
        if len(nodes) == len(leases) and _needed(site, leases, observation):
            back = leases[0].state == records.POWERING
            wanted.append((leases, [node for node in nodes if node.launchable] if back else nodes))
    if wanted := [(leases, nodes) for leases, nodes in wanted if nodes]:
        _powered_up(site, wanted)


def _powered_up(site: Site, wanted: list[_Wanted]) -> None:
    nodes = [node for _, nodes in wanted for node in nodes]
    try:
        site.scheduler.put_permit([node.name for node in nodes])
        _power_up(site, nodes)
    except SchedulerError as error:
        site.event("trouble", str(error), launch=wanted[0][0][0].launch if len(wanted) == 1 else "")
        for one in wanted if len(wanted) > 1 and not site.late else []:
            _powered_up(site, [one])  # one that is refused keeps no other
        return
    with site.ledger.transaction():
        for leases, _ in wanted:
            site.ledger.move(leases, records.POWERING, site.now)


def _early(site: Site, id: str) -> list[LeaseRow]:
    return [lease for lease in site.ledger.leases_of(id) if lease.state in records.EARLY]


def ask(site: Site, launches: list[LaunchRow], observation: Observation) -> None:
    """Ask the cloud for every launch that got so far, AT_ONCE side by side. What would begin after the tick's interval
    is for the next tick, but for the first: notices are read at every tick's start.
    """
    while launches and not (site.late and site.asked):
        now, launches = launches[:AT_ONCE], launches[AT_ONCE:]
        site.asked = True
        launches += _asked(site, now, observation)


def _asked(site: Site, launches: list[LaunchRow], observation: Observation) -> list[LaunchRow]:
    """Into the ledger, then to the cloud, then into the ledger what it answered. The launches that are to be asked for
    once more: those that it refused, in their next zone.
    """
    wanted = [(launch, intent) for launch in launches if (intent := _intent(site, launch))]
    requests = [LaunchRequest.recorded(json.loads(intent.request)) for _, intent in wanted]
    answers, again = site.cloud.launch_all(requests) if requests else [], list[LaunchRow]()
    for (launch, intent), answer in zip(wanted, answers, strict=True):
        try:
            _answered(site, launch, _early(site, launch.id), intent, answer)
            if steps(site, launch, observation) == "ask":
                again.append(launch)
        except (SchedulerError, CloudError) as error:
            site.event("trouble", str(error), launch=launch.id)
    return again


def _power_up(site: Site, nodes: list[Node]) -> None:
    if names := [node.name for node in nodes if not node_states.powering_up(node.states)]:
        site.scheduler.power_up(names)


def _needed(site: Site, leases: list[LeaseRow], observation: Observation) -> bool:
    """What isn't launched yet is not launched while a person halts the renting."""
    return site.halt is None and any(
        (job := observation.job(id)) and (job.pending or deadline_moves.goes_to(site, job, lease))
        for lease in leases
        for id in site.ledger.jobs_of(lease.id)
    )


def _intent(site: Site, launch: LaunchRow) -> IntentRow | None:
    """What the cloud is to be asked with, written down; None: the launch is given up."""
    leases = _early(site, launch.id)
    if leases[0].state == records.REQUESTED:
        return replace(_open(site, launch), state="unknown")  # the first call may have happened
    done = site.ledger.intents(launch.id)
    left = [zone for zone in launch.zones if zone not in {intent.zone for intent in done}]
    if not left:
        why = "; ".join(f"{intent.zone}: {intent.code or intent.error}" for intent in done)
        _spared(site, leases, f"no zone gave any ({why})")
        return None
    attempt = len(done) + 1
    request = launch_request(site.document, launch, left[0], attempt)
    if request is None:
        leave(site, leases, f"zone {left[0]} of pool {launch.pool} is not declared any more")
        return None
    rate = money.rates_of(leases[0], spending.rates(site.ledger, site.now))[-1]
    owner = ownership.owner_of(site.ledger).id
    request = replace(request, owner=owner, account=rate.account, usd_per_hour=rate.usd_per_hour)
    site.ledger.add_intent(request.token, launch.id, attempt, left[0], asdict(request), site.now)
    text = f"{request.count} {launch.market} {launch.instance_type} in {left[0]}, attempt {attempt}"
    site.event("requested", text, launch=launch.id)
    return site.ledger.intents(launch.id)[-1]


def _open(site: Site, launch: LaunchRow) -> IntentRow:
    """The intent without an answer: we died over it, or the cloud gave none."""
    asked = reversed(site.ledger.intents(launch.id))
    return next(intent for intent in asked if intent.state in ("open", "unknown"))


def _shown(site: Site, intent: IntentRow) -> list[Instance]:
    return [instance for instance in site.instances.values() if instance.token == intent.token]


def _whole(site: Site, launch: LaunchRow, intent: IntentRow) -> bool:
    """Whether the cloud shows all instances of an intent, and will not take them back as a launch that failed."""
    shown = _shown(site, intent)
    return len(shown) == len(launch.nodes) and all(instance.state != LAUNCHING for instance in shown)


def _answered(
    site: Site, launch: LaunchRow, leases: list[LeaseRow], intent: IntentRow, answer: list[Instance] | CloudError
) -> None:
    """Write down what the cloud answered."""
    try:
        if isinstance(answer, CloudError):
            if type(answer) is Refused and intent.state == "unknown":  # rights are asked before tokens: says nothing
                answer = OutcomeUnknown(str(answer), answer.code)
            raise answer
    except OutcomeUnknown as error:
        _unknown(site, launch, leases, intent, error)
    except TokenMismatch as error:  # the first launch may live: only instances with this token tell
        site.event("trouble", f"the token of {intent.zone} was used with other parameters: {error}", launch=launch.id)
        _unknown(site, launch, leases, intent, error)
    except InsufficientCapacity as error:
        fewest = 1 if isinstance(error, TooExpensive) else len(launch.nodes)
        here = Place(launch.pool, intent.zone, launch.market, fewest, launch.instance_type)
        _refused(site, launch, leases, intent, error, [here], site.document.burst.cool_down_s)
    except QuotaReached as error:
        size = len(launch.nodes)
        everywhere = [Place(launch.pool, zone, launch.market, size, launch.instance_type) for zone in launch.zones]
        _refused(site, launch, leases, intent, error, everywhere, _QUOTA_S)
    except Malformed as error:
        text = f"pool {launch.pool} ({launch.market}, {launch.instance_type}) is closed until it is cured: {error}"
        site.event("needs_a_person", text, launch=launch.id)
        everything = [Place(launch.pool, zone, launch.market, 1, launch.instance_type) for zone in launch.zones]
        _refused(site, launch, leases, intent, error, everything, None)
    except NeverUp as error:
        broken_pool.did_not_join(site, leases[0], str(error))
        everywhere = [Place(launch.pool, zone, launch.market, 1, launch.instance_type) for zone in launch.zones]
        _refused(site, launch, leases, intent, error, everywhere, _REFUSED_S)
    except Refused as error:
        here = Place(launch.pool, intent.zone, launch.market, 1, launch.instance_type)
        _refused(site, launch, leases, intent, error, [here], _REFUSED_S)
    else:
        _adopt(site, launch, leases, intent, answer)


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
            site.ledger.move(
                [lease],
                records.LAUNCHED,
                now,
                instance_id=instance.id,
                # it may have run since it was asked for first, and is kept for as long as was promised from then on
                from_s=intent.made_s,
                committed_until_s=lease.committed_until_s + intent.made_s - lease.made_s,
                seen_s=now,
                address=instance.address or "",
            )
        names = ", ".join(f"{node} = {instance.id}" for node, instance in of.items())
        site.event("launched", f"{names} ({launch.market} {launch.instance_type}, {intent.zone})", launch=launch.id)
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
) -> None:
    """A definite no: nothing was started.
    Close the places (None: until somebody reopens them), and go on with the zones that are left.
    """
    now, why = site.now, error.code or str(error)
    seconds = None if seconds is None else max(seconds, min(_TOOK * (now - intent.made_s), backoff.LONGEST_S))
    before = site.ledger.cool_down_of(places[0])
    with site.ledger.transaction():
        site.ledger.answer_intent(intent.token, "refused", now, code=error.code, error=str(error))
        for place in places:
            cool_downs.close(site.ledger, place, seconds, why, now, launch.serial)
        site.ledger.move(leases, records.POWERING, now)
        text = f"{launch.market} {launch.instance_type} in {intent.zone}: {error}"
        site.event("refused", text, launch=launch.id)
        if not isinstance(error, InsufficientCapacity | Malformed | NeverUp) and _stays(before, why):
            what = f"pool {launch.pool} ({launch.market}, {launch.instance_type})"
            site.tell(
                "needs_a_person",
                f"{what} is refused again; it is asked for less and less often, but each hour: {error}",
            )
    if len(places) > 1 or seconds is None:  # the other zones are closed with it
        _spared(site, site.ledger.leases_of(launch.id), f"refused: {why}")


def _stays(before: CoolDownRow | None, why: str) -> bool:
    """Whether this is the second time that a place refuses so: the first may be over, the third was told."""
    return before is not None and before.reason == why and before.strikes == 1


def _spared(site: Site, leases: list[LeaseRow], reason: str) -> None:
    """Nothing was started, and nothing will be: they end here. Their nodes, which the scheduler has powered up, are for
    whom the next decision rents for; what it leaves is powered down (`going.let_go`), which takes minutes.
    """
    with site.ledger.transaction():
        site.ledger.move(leases, records.ENDED, site.now, end_reason=reason)
        nodes = ", ".join(lease.node for lease in leases)
        site.event("given_up", f"{nodes}: {reason}", launch=leases[0].launch)
    site.spare.update(lease.node for lease in leases)


def _unknown(site: Site, launch: LaunchRow, leases: list[LeaseRow], intent: IntentRow, error: CloudError) -> None:
    works = isinstance(error, UnderWay)
    retry = site.now + (_WORKS_S if works else min(2.0 ** min(intent.tries, 10), _LONGEST_RETRY_S))
    site.ledger.answer_intent(intent.token, "unknown", site.now, code=error.code, error=str(error), retry_s=retry)
    what = f"{launch.market} {launch.instance_type} in {intent.zone}: {error}"
    if not works:
        site.event("unknown", f"{what}; to be repeated unchanged", launch=launch.id)
    elif intent.code != error.code:
        site.event("under_way", what, launch=launch.id)
    if isinstance(error, TokenMismatch):
        _look(site, launch, leases, intent)


def _look(site: Site, launch: LaunchRow, leases: list[LeaseRow], intent: IntentRow) -> None:
    """Look for instances of a token that is not to be repeated any more."""
    try:
        instances = site.cloud.by_token(intent.token)
    except UnderWay:  # a launch can't be called off: what it makes is ended when it is there
        return
    if isinstance(instances, CloudError):
        _answered(site, launch, leases, intent, instances)
        return
    complete = len(instances) == len(launch.nodes)
    if complete and any(instance.alive for instance in instances):
        _adopt(site, launch, leases, intent, instances)
    elif complete or site.now - intent.made_s > _NEVER_ARRIVED_S:  # none of them lives
        with site.ledger.transaction():
            site.ledger.answer_intent(
                intent.token, "refused", site.now, code="NeverArrived", error="no instance with its token appeared"
            )
            site.ledger.move(leases, records.POWERING, site.now)


def leave(site: Site, leases: list[LeaseRow], reason: str) -> None:
    """Give leases up; the next step abandons their nodes and ends their instances."""
    if leases:
        with site.ledger.transaction():
            site.ledger.move(leases, records.LEAVING, site.now, end_reason=reason)
            nodes = ", ".join(lease.node for lease in leases)
            site.event("given_up", f"{nodes}: {reason}", launch=leases[0].launch)
