"""A month of a site with the real controller over the fakes, Slurm's accounting of it, and the bill that AWS sends.

The bill is written from what the instances did, not from the ledger: AWS Data Exports, "Line item columns" of CUR 2.0
(one line for each clock hour, UTC; amounts and costs with ten decimals) and "FOCUS 1.2 with AWS columns". It keeps book
of every effect that it plants, in dollars. The same month as the other clouds write it is in `clouds_months`.
"""

import csv
import gzip
import io
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from random import Random

from ironburst.burst import Resources
from ironburst.cost.leases import priced
from tests.fakes import FakeSlurm, world
from tests.fakes.world import World
from tests.unit.cost import clouds_months

ASSUMED = {"spot": 24.0, "on-demand": 55.04}
TEN = Decimal("1e-10")
ACCOUNTS = ("vision", "nlp", "")


class Accounted(FakeSlurm):
    """Keeps, as slurmdbd does, one record for each try of a job."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.records = []  # (id, submit, start, end, nodes, state)

    def _keep(self, fake, state, end):
        start, nodes = fake.started[-1]
        self.records.append((fake.job, fake.job.submit_s, start, end, nodes, state))

    def _end(self, fake, how):
        if fake.job.on:
            self._keep(fake, how, fake.ends if how == "COMPLETED" and fake.ends else self.clock.now())
        super()._end(fake, how)

    def _requeued(self, fake):
        if fake.job.on:
            self._keep(fake, "REQUEUED", self.clock.now())
        super()._requeued(fake)

    def sacct(self):
        """As `sacct --parsable2` prints it, with a step of each job."""
        names = "JobIDRaw|JobID|Submit|Start|End|ElapsedRaw|AllocTRES|User|Account|NodeList|State"
        lines = [names]
        for job, submit, start, end, nodes, state in self.records:
            tres = f"billing=8,cpu=8,gres/gpu={job.each.gpus * len(nodes)},mem=1000M,node={len(nodes)}"
            rest = f"{int(submit)}|{int(start)}|{int(end)}|{int(end) - int(start)}|{tres}"
            lines.append(f"{job.id}|{job.id}|{rest}|{job.user}|{job.account}|{','.join(nodes)}|{state}")
            lines.append(f"{job.id}.batch|{job.id}.batch|{rest}|||{nodes[0]}|{state}")
        return lines


def play(tmp_path, monkeypatch, days=3, seed=1, jobs=14):
    """A site that has run for so many days; the ledger stays open."""
    monkeypatch.setattr(world, "FakeSlurm", Accounted)
    site, rng = World(tmp_path, home=2, tick_s=60), Random(seed)
    began = site.clock.now()
    submits = sorted(began + rng.uniform(0, days * 86400 - 20000) for _ in range(jobs))
    for number, at in enumerate(submits):
        while site.clock.now() < at and not site.quiet():
            site.pass_by(120.0)
        site.clock.at = max(site.clock.at, at)
        account = ACCOUNTS[number % 3]
        site.slurm.submit(nodes=2, limit_s=9000.0, runs_s=round(rng.uniform(3000, 8000)), account=account, user="bob")
        market = {"requeue": number % 4 != 0}
        for _ in range(rng.randint(1, 3)):
            run_s = round(rng.uniform(300, 6000))
            each = Resources(8, 2, 1000)
            site.slurm.submit(limit_s=8000.0, runs_s=run_s, account=account, user="alice", each=each, **market)
        if number == 5:
            site.until(lambda: any(lease.state == "ready" for lease in site.ledger.leases()), limit_s=2000.0)
            site.cloud.interrupt(next(iter(site.cloud.alive())).id)
    site.until(site.quiet, limit_s=40000.0, every_s=120.0)
    site.clock.at = max(site.clock.at, began + days * 86400)
    return site


@dataclass
class Bill:
    """`lines`: dicts by column of a CUR; `planted`: dollars by cause."""

    lines: list = field(default_factory=list)
    planted: Counter = field(default_factory=Counter)

    def add(self, cause, usd):
        self.planted[cause] += Decimal(usd)

    def line(self, kind, usage_type, resource, from_s, to_s, amount, rate, cost, tags=None, **more):
        self.lines.append(
            {
                "line_item_line_item_type": kind,
                "line_item_usage_start_date": stamp(from_s),
                "line_item_usage_end_date": stamp(to_s),
                "line_item_product_code": "AmazonEC2",
                "line_item_usage_type": usage_type,
                "line_item_resource_id": resource,
                "line_item_usage_amount": str(amount),
                "line_item_unblended_rate": "" if rate is None else str(rate),
                "line_item_unblended_cost": str(ten(cost)),
                "line_item_currency_code": "USD",
                "savings_plan_savings_plan_effective_cost": "",
                "reservation_effective_cost": "",
                "resource_tags": json.dumps(tags or {}),
            }
            | more
        )


def stamp(at_s):
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def ten(usd):
    return Decimal(usd).quantize(TEN, ROUND_HALF_UP)


def tags_of(instance):
    """As the Billing console's keys are written in a CUR 2.0."""
    return {"user_ironburst_cluster": "lab", "user_ironburst_pool": instance.pool}


def hours(from_s, to_s):
    at = from_s
    while at < to_s:
        edge = (at // 3600 + 1) * 3600
        yield at // 3600 * 3600, edge, min(edge, to_s) - at
        at = edge


def bill(site, seed=2, effects=True):
    """Of all instances that a site has had. `effects`: with all that makes it differ from the ledger's estimates."""
    made, rng = Bill(), Random(seed)
    leases = {
        each.lease.instance_id: each
        for each in priced(site.ledger.leases(open_only=False), _rates(site), site.clock.now())
    }
    for number, (id, fake) in enumerate(site.cloud.all.items()):
        lease, market = leases[id], fake.instance.market
        begin, end = lease.from_s, lease.to_s  # whole seconds: FakeClock
        if effects and number % 5 == 1:  # it took so long to end
            end += 97.0
        elif effects and number % 5 == 2:  # and here it was over before we knew
            end -= min(40.0, (end - begin) / 2)
        if effects and number == 3:  # not in this file
            made.add("missing", -ten(lease.usd(lease.to_s)))
            continue
        _instance(made, id, fake, lease, market, begin, end, number, rng, effects)
        if effects:
            _beside(made, id, fake, begin, end, rng)
    if effects:
        _account(made, site)
    return made


def _rates(site):
    return site.ledger.rates_paid_after(0.0)


def _instance(made, id, fake, lease, market, begin, end, number, rng, effects):
    assumed = Decimal(str(lease.prices[-1][2]))
    for hour, edge, seconds in hours(begin, end):
        ours = max(min(edge, lease.to_s) - max(hour, lease.from_s), 0.0)
        amount = ten(Decimal(seconds) / 3600)
        made.add("ran_on" if seconds > ours else "ended_sooner", Decimal(seconds - ours) / 3600 * assumed)
        rate, kind, more = assumed, "Usage", {}
        usage = "USE1-SpotUsage:p5.48xlarge" if market == "spot" else "USE1-BoxUsage:p5.48xlarge"
        if effects and market == "spot":
            rate = Decimal(str(round(rng.uniform(18, 24), 4)))
            made.add("spot_price", Decimal(seconds) / 3600 * (rate - assumed))
        elif effects and number % 3 == 0:
            kind, cost = "SavingsPlanCoveredUsage", ten(amount * Decimal("31.7"))
            more = {"savings_plan_savings_plan_effective_cost": str(cost)}
            made.add("savings_plan", Decimal(seconds) / 3600 * (Decimal("31.7") - assumed))
            made.line(
                "SavingsPlanNegation", usage, "", hour, edge, amount, None, -amount * rate, tags_of(fake.instance)
            )
        elif effects and number % 3 == 1:
            kind, cost = "DiscountedUsage", ten(amount * Decimal("28.5"))
            more = {"reservation_effective_cost": str(cost)}
            made.add("reserved", Decimal(seconds) / 3600 * (Decimal("28.5") - assumed))
        elif effects:
            rate = Decimal("44.032")
            made.add("other_price", Decimal(seconds) / 3600 * (rate - assumed))
        cost = Decimal(0) if kind == "DiscountedUsage" else amount * rate
        made.line(kind, usage, id, hour, edge, amount, rate, cost, tags_of(fake.instance), **more)


def _beside(made, id, fake, begin, end, rng):
    """What comes with an instance."""
    tags, hour = tags_of(fake.instance), begin // 3600 * 3600
    for cause, usage, resource, cost in (
        ("disk", "USE1-EBS:VolumeUsage.gp3", f"vol-{id}", ten(Decimal((end - begin) / 2.6e6 * 16))),
        ("public_ipv4", "USE1-PublicIPv4:InUseAddress", f"arn:aws:ec2:us-east-1:1:network-interface/eni-{id}", "0.005"),
        ("data_transfer", "USE1-DataTransfer-Regional-Bytes", id, str(round(rng.uniform(0, 3), 10))),
        ("data_transfer", "USE1-USW2-AWS-Out-Bytes", id, "0.0213310000"),
    ):
        made.line("Usage", usage, resource, hour, hour + 3600, 1, None, cost, tags)
        made.add(cause, cost)
    for kind, cause, cost in (("EdpDiscount", "discount", "-0.77"), ("Tax", "tax", "1.25"), ("Credit", "credit", "-5")):
        made.line(kind, "USE1-BoxUsage:p5.48xlarge", id, hour, hour + 3600, 1, None, cost, tags)
        made.add(cause, cost)


def _account(made, site):
    """What no lease of ours has to do with."""
    hour = site.clock.now() // 3600 * 3600 - 50 * 3600
    ours = {"user_ironburst_cluster": "lab"}
    for cause, kind, usage, resource, cost, tags in (
        ("orphan", "Usage", "USE1-BoxUsage:p5.48xlarge", "i-orphan", "55.04", ours | {"user_ironburst_pool": "p5"}),
        ("fixed_node", "Usage", "USE1-BoxUsage:p5.48xlarge", "i-f", "55.04", ours | {"user_ironburst_group": "fixed"}),
        ("image_build", "Usage", "USE1-BoxUsage:m7i.large", "i-b", "0.1", ours | {"user_ironburst_role": "build"}),
        ("stack", "Usage", "USE1-NatGateway-Hours", "arn:aws:ec2:us-east-1:1:natgateway/nat-1", "0.045", ours),
        ("refund", "Refund", "USE1-NatGateway-Hours", "", "-0.01", ours),
        ("fee", "Fee", "USE1-CapacityBlock", "cr-1", "1000", ours),
        ("", "Usage", "USE1-BoxUsage:t3.micro", "i-website", "0.0104", {"user_team": "web"}),
        ("", "Tax", "", "", "120", {}),
        ("", "Usage", "USE1-BoxUsage:p5.48xlarge", "i-x", "55.04", {"user_ironburst_cluster": "other"}),
    ):
        made.line(kind, usage, resource, hour, hour + 3600, 1, None, cost, tags)
        if cause:
            made.add(cause, cost)


def cur(made, path):
    """As a CUR 2.0 in text/csv."""
    return _write(path, made.lines)


def focus(made, path):
    """The same bill in FOCUS 1.2 with AWS columns."""
    kinds = {"Tax": "Tax", "Credit": "Credit", "Refund": "Adjustment", "Fee": "Purchase", "EdpDiscount": "Credit"}
    rows = []
    for line in made.lines:
        said, usage = line["line_item_line_item_type"], line["line_item_usage_type"]
        plan, reserved = said == "SavingsPlanCoveredUsage", said == "DiscountedUsage"
        effective = line["savings_plan_savings_plan_effective_cost"] or line["reservation_effective_cost"]
        if said == "SavingsPlanNegation":
            continue  # FOCUS has no such lines: EffectiveCost has it
        spot = "SpotUsage" in usage
        rows.append(
            {
                "ProviderName": "AWS",
                "ChargeCategory": kinds.get(said, "Usage"),
                "ChargePeriodStart": line["line_item_usage_start_date"],
                "ChargePeriodEnd": line["line_item_usage_end_date"],
                "BilledCost": "0" if plan or reserved else line["line_item_unblended_cost"],
                "EffectiveCost": effective or line["line_item_unblended_cost"],
                "BillingCurrency": "USD",
                "ResourceId": line["line_item_resource_id"],
                "PricingCategory": "Committed" if plan or reserved else "Dynamic" if spot else "Standard",
                "CommitmentDiscountType": "Savings Plan" if plan else "Reserved Instance" if reserved else "",
                "ConsumedQuantity": line["line_item_usage_amount"],
                "ContractedUnitPrice": "" if plan or reserved else line["line_item_unblended_rate"],
                "x_UsageType": usage,
                "Tags": line["resource_tags"],
            }
        )
    return _write(path, rows)


def google(made, path):
    """The same bill as Google's export has it."""
    return _write(path, clouds_months.google(made.lines))


def azure(made, path):
    """The same bill as Azure's export has it."""
    return _write(path, clouds_months.azure(made.lines))


def renamed(lease, cloud):
    """A lease whose instance is in another cloud."""
    id = lease.instance_id
    return lease if cloud == "aws" else replace(lease, instance_id=getattr(clouds_months, f"{cloud}_id")(id))


def _write(path, rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt") as file:
        file.write(out.getvalue())
    return path
