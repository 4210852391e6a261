"""The mistakes that people make in stack files: none is accepted in silence. Each is made as a person would make it, by
a change of the text of a good file.
"""

# ruff: noqa: E501

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ironburst.config import load, stack

PROD = Path(__file__).parents[3] / "stacks/Pulumi.prod.yaml"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
GOOD = PROD.read_text()
DGX = "names: dgx[01-04]"
P5 = "name: p5, instance_type: p5.48xlarge, max_nodes: 8"
BURST = "wait_target: {mean: 20m, p99: 8h, p999: 40h, max: 7d, gpu_hour_weighted: 16h}"
NODE = "addresses: 10.30.0.[11-14]"
HEAD_BMC = "https://10.30.16.10"

# what was done: (text of the good file, what stands there instead, end of the finding's path, words of its message)
MISTAKES = {
    # YAML
    "a tab": ("    name: prod", "\tname: prod", "", "line 6: has a tab; indent with spaces"),
    "a colon in a value": ("name: prod", "name: prod: one", "", "line 6: has a second `: ` in one value; quote it"),
    "a bracket not closed": ("names: dgx[01-04]", "names: [dgx[01-04]", "", "line 21: the `[` of line 21 isn't closed"),
    "a brace not closed": ("{name: r01, units: 48}", "{name: r01, units: 48", "", "line 12: the `{` of line 12 isn't closed"),
    "a quote not closed": ('cuda: "13.0"', 'cuda: "13.0', "", "line 7: has a quote that isn't closed"),
    "wrong indentation": ("    name: prod", "   name: prod\n     halls: 3", "", "line 7: is indented otherwise"),
    "a key twice in a section": (
        "max_nodes: 8",
        "max_nodes: 8, max_nodes: 80",
        "cloud.pools[0].max_nodes",
        "is written twice, in line 47",
    ),
    "a section twice": (
        "    budget: {usd",
        "    budget: {usd_per_month: 1}\n    budget: {usd",
        "budget",
        "is written twice, in lines 51 and 52: keep one of them",
    ),
    "a key of the file twice": ("  aws:region: us-east-1", "  aws:region: us-east-1\n  aws:region: eu-west-1", "config.aws:region", "is written twice, in lines 4 and 5"),
    "an asterisk for any": ("zones: [us-east-1a, us-east-1b]\n", "zones: [*]\n", "", "line 41: has a `*`"),
    "a percent sign": ("name: prod", "name: %prod", "", "line 6: has a value that begins with '%'; quote it"),
    "an @ first": ("name: prod", "name: @prod", "", "line 6: has a value that begins with '@'; quote it"),
    "no list where one belongs": ("racks: [{name: r01, units: 48}, {name: r02, units: 48}, {name: r03, units: 48}]", "racks: r01", "halls[0].racks", "'r01' is no list"),
    "no section where one belongs": ("budget: {usd_per_month: 60000, notify: [platform@example.org, finance@example.org]}", "budget: 60000", "budget", "60000 is no section; write keys below it"),
    "an empty section": ("scheduler: {head: head, munge_key: \"aws-secretsmanager:prod/munge-key\"}", "scheduler:", "scheduler", "is empty"),
    "the key of another case": ("ironburst:cluster:", "ironburst:Cluster:", "config", "has no key ironburst:cluster; declare the cluster there; ironburst:Cluster is none"),
    "a key of the file that isn't ours": ("  ironburst:cluster:", "  ironburst:clusters: 3\n  ironburst:cluster:", "ironburst:clusters", "there is no such key"),
    # versions without quotes
    "cuda without quotes": ('cuda: "13.0"', "cuda: 13.0", "software.cuda", 'quote it: cuda: "13.0"'),
    "cuda rounded by YAML": ('cuda: "13.0"', "cuda: 12.10", "software.cuda", "quote it"),
    "slurm without quotes": ('slurm: "24.11"', "slurm: 24.11", "software.slurm", 'quote it: slurm: "24.11"'),
    "slurm as 24.5": ('slurm: "24.11"', 'slurm: "24.5"', "software.slurm", "'24.5'"),
    "a driver with two parts too many": ("580.95.05", "580.95.05.1", "software.driver", "580.95.05.1"),
    "a driver that is no number": ("driver: 580.95.05", "driver: latest", "software.driver", "'latest'"),
    "a CUDA that isn't known": ('cuda: "13.0"', 'cuda: "19.0"', "software", "19.0"),
    "an os in another spelling": ("os: ubuntu2404", "os: ubuntu-24.04", "software.os", "did you mean 'ubuntu2404'?"),
    "yes for a container runtime": ("slurm: \"24.11\"", "slurm: \"24.11\", container_runtime: yes", "software.container_runtime", "containerd"),
    # durations
    "a duration as a number": ("max_run: 48h", "max_run: 48", "cloud.pools[0].max_run", "48 is not a duration; write a number above zero with a unit"),
    "a negative duration": ("max_run: 48h", "max_run: -1h", "cloud.pools[0].max_run", "'-1h' is not a duration"),
    "a negative number as duration": ("max_run: 48h", "max_run: -3600", "cloud.pools[0].max_run", "-3600 is not a duration"),
    "a duration of zero": ("max_run: 48h", "max_run: 0s", "cloud.pools[0].max_run", "'0s' is not a duration"),
    "a duration of 0": ("max_run: 48h", "max_run: 0", "cloud.pools[0].max_run", "0 is not a duration"),
    "hours and minutes": ("max_run: 48h", "max_run: 1h30m", "cloud.pools[0].max_run", "'1h30m' is not a duration"),
    "a duration with a point": ("max_run: 48h", "max_run: 1.5h", "cloud.pools[0].max_run", "'1.5h' is not a duration"),
    "minutes as Slurm writes them": ("max_run: 48h", "max_run: 48:00:00", "cloud.pools[0].max_run", "is not a duration"),
    "a duration in weeks": ("max_run: 48h", "max_run: 2w", "cloud.pools[0].max_run", "'2w' is not a duration"),
    "true for a duration": ("max_run: 48h", "max_run: true", "cloud.pools[0].max_run", "True is no number"),
    "a duration of a lifetime": ("max_run: 48h", "max_run: 99999d", "cloud.pools[0].max_run", "longer than a year"),
    "wait target as a number": (BURST, "wait_target: 1200", "burst.wait_target.mean", "1200 is not a duration"),
    "waits in the wrong order": ("p99: 8h", "p99: 8d", "burst.wait_target", "has p99 8d, longer than p999, 40h"),
    "a tick of an hour": (BURST, "tick: 1h", "burst", "tick"),
    # names
    "a node name with a blank": (DGX, "names: [my node!, b, c, d]", "halls[0].nodes[1].names", "'my node!' is no host name"),
    "a range as a shell writes it": (DGX, "names: 'dgx{01..04}'", "halls[0].nodes[1].names", "write dgx[01-04]"),
    "a range without brackets": (DGX, "names: dgx01-04", "halls[0].nodes[1].units", "dgx01-04 is one name; a range is dgx[01-04]"),
    "names in one text": (DGX, "names: dgx01 dgx02 dgx03 dgx04", "halls[0].nodes[1].names", "is no host name"),
    "names with commas": (DGX, "names: dgx01,dgx02,dgx03,dgx04", "halls[0].nodes[1].names", "is no host name"),
    "a name with an underscore": (DGX, "names: dgx_[01-04]", "halls[0].nodes[1].names", "'dgx_01' is no host name"),
    "a name that is too long": (DGX, f"names: {'x' * 62}[01-04]", "halls[0].nodes[1].names", "63 characters"),
    "a name of digits alone": (DGX, "names: '[01-04]'", "halls[0].nodes[1].names", "digits alone"),
    "a full name with a point at its end": (DGX, "names: dgx[01-04].", "halls[0].nodes[1].names", "is no host name"),
    "the hall's name in capitals": ("name: hall-a\n", "name: HallA\n", "halls[0].name", "'HallA'"),
    "the cluster's name with a blank": ("name: prod\n", "name: my prod\n", "name", "'my prod'"),
    "a node twice": ("names: dgx[05-08]", "names: dgx[04-07]", "halls[0].nodes[2].names[0]", "used already"),
    "a node that is localhost": ("names: head", "names: localhost", "halls[0].nodes[0].names", "localhost"),
    "a platform's family": ("platform: dgx-h100\n            rack: r01", "platform: dgx-a100\n            rack: r01", "halls[0].nodes[1].platform", "did you mean 'dgx-a100-320gb' or 'dgx-a100-640gb'"),
    "a platform in other letters": ("platform: dgx-h100\n            rack: r01", "platform: DGX H100\n            rack: r01", "halls[0].nodes[1].platform", "did you mean 'dgx-h100'"),
    "an instance type without its size": (P5, "name: p5, instance_type: p5, max_nodes: 8", "cloud.pools[0].instance_type", "p5.48xlarge"),
    "a misspelt role": ("role: head", "role: haed", "halls[0].nodes[0].role", "did you mean 'head'?"),
    "a misspelt market": ("markets: [on-demand]", "markets: [ondemand]", "cloud.pools[0].markets[0]", "did you mean 'on-demand'?"),
    # addresses
    "an address that is none": (NODE, "addresses: 10.30.0.[256-259]", "halls[0].nodes[1].addresses[0]", "is not an IPv4 address"),
    "one address too few": (NODE, "addresses: 10.30.0.[11-13]", "halls[0].nodes[1].addresses", "gives 3 values for 4 nodes"),
    "an address of the network itself": ("addresses: 10.30.0.10", "addresses: 10.30.0.0", "halls[0].nodes[0].addresses[0]", "is the network's own in 10.30.0.0/20"),
    "the broadcast address": ("addresses: 10.30.0.10", "addresses: 10.30.15.255", "halls[0].nodes[0].addresses[0]", "for broadcast in 10.30.0.0/20"),
    "a network with host bits": ("cidr: 10.30.0.0/20", "cidr: 10.30.0.1/20", "halls[0].cidr", "but an address in one; write 10.30.0.0/20"),
    "a network without its length": ("cidr: 10.30.0.0/20", "cidr: 10.30.0.0", "halls[0].cidr", "it has no length"),
    "a public network": ("cidr: 10.31.0.0/16", "cidr: 8.8.0.0/16", "cloud.network.cidr", "8.8.0.0/16 is a public network", "warning"),
    "a network larger than AWS makes": ("cidr: 10.31.0.0/16", "cidr: 172.16.0.0/12", "cloud.network.cidr", "larger than AWS makes a VPC: write a /16 to /28"),
    "an IPv6 network": ("cidr: 10.30.0.0/20", "cidr: 'fd00::/64'", "halls[0].cidr", "is not an IPv4 network"),
    "a MAC too short": (NODE, NODE + "\n            macs: ['52:54:00:12:34', '52:54:00:12:34:57', '52:54:00:12:34:58', '52:54:00:12:34:59']", "halls[0].nodes[1].macs[0]", "is not a MAC address"),
    "a MAC for a group": (NODE, NODE + "\n            macs: ['01:00:5e:00:00:01', '52:54:00:12:34:57', '52:54:00:12:34:58', '52:54:00:12:34:59']", "halls[0].nodes[1].macs[0]", "is no card's"),
    "a MAC of zeros": (NODE, NODE + "\n            macs: ['00:00:00:00:00:00', '52:54:00:12:34:57', '52:54:00:12:34:58', '52:54:00:12:34:59']", "halls[0].nodes[1].macs[0]", "is no card's"),
    "a MAC that YAML takes for a number": (NODE, NODE + "\n            macs: [52:54:00:12:34:56, 52:54:00:12:34:57, 52:54:00:12:34:58, 52:54:00:12:34:59]", "halls[0].nodes[1].macs[0]", 'quote it: "52:54:00:12:34:56"'),
    "a serial without quotes": (NODE, NODE + "\n            serials: [1234, 1235, 1236, 1237]", "halls[0].nodes[1].serials[0]", "quote it"),
    "an empty serial": (NODE, NODE + "\n            serials: ['', a, b, c]", "halls[0].nodes[1].serials[0]", "empty"),
    # URLs
    "a BMC without https": (HEAD_BMC, "10.30.16.10", "bmc.addresses[0]", "write https://10.30.16.10"),
    "a BMC by http": (HEAD_BMC, "http://10.30.16.10", "bmc.addresses[0]", "password goes over the network for all to read", "warning"),
    "a BMC with a password in its URL": (HEAD_BMC, "https://admin:hunter2@10.30.16.10", "bmc.addresses[0]", "has a user or password"),
    "a BMC with a port that is none": (HEAD_BMC, "https://10.30.16.10:99999", "bmc.addresses[0]", "port"),
    "a BMC with a path": (HEAD_BMC, "https://10.30.16.10/redfish/v1", "bmc.addresses[0]", "write https://10.30.16.10"),
    "a BMC of another network": (HEAD_BMC, "https://10.99.16.10", "bmc.addresses[0]", "is not in 10.30.16.0/24"),
    "a BMC without a user": ("username: ironburst, password: \"aws-secretsmanager:prod/bmc\"}\n          - names: dgx[01-04]", "username: '', password: \"aws-secretsmanager:prod/bmc\"}\n          - names: dgx[01-04]", "bmc.username", "empty"),
    "a password where a reference belongs": ("aws-secretsmanager:prod/munge-key", "hunter2", "scheduler.munge_key", "not a secret reference"),
    "rented GPUs with less memory": ("platform: dgx-h100\n            rack: r02", "platform: dgx-a100-640gb\n            rack: r02", "cloud.pools[1].less_gpu_memory", "p4d.24xlarge has A100 SXM4 40GB, and home has A100 SXM4 80GB: to Slurm both are a100"),
    # regions and zones
    "a region that isn't there": ("region: us-east-1\n      network", "region: us-est-1\n      network", "cloud.region", "did you mean 'us-west-1' or 'us-east-1'?"),
    "a zone as region": ("region: us-east-1\n      network", "region: us-east-1a\n      network", "cloud.region", "is a zone; write us-east-1"),
    "another region than Pulumi's": ("aws:region: us-east-1", "aws:region: us-west-2", "cloud.region", "aws:region is us-west-2"),
    "a region that Pulumi doesn't know either": ("aws:region: us-east-1", "aws:region: moon", "cloud.region", "aws:region is moon: write the same region in both"),
    "no region for Pulumi": ("  aws:region: us-east-1\n", "", "aws:region", "write aws:region: us-east-1", "warning"),
    "a region in words": ("region: us-east-1\n      network", "region: N. Virginia\n      network", "cloud.region", "us-east-1"),
    "a zone's letter alone": ("zones: [us-east-1a, us-east-1b]\n        hall", "zones: [a, us-east-1b]\n        hall", "cloud.network.zones[0]", "write for example us-east-1a"),
    "a zone twice": ("zones: [us-east-1a, us-east-1b]\n        hall", "zones: [us-east-1a, us-east-1a, us-east-1b]\n        hall", "cloud.network.zones[1]", "twice"),
    "a pool's zone twice": ("zones: [us-east-1a, us-east-1b], markets: [on-demand]", "zones: [us-east-1a, us-east-1a], markets: [on-demand]", "cloud.pools[0].zones[1]", "twice"),
    # money and mail
    "money with a sign": ("usd_per_month: 60000", "usd_per_month: $60000", "budget.usd_per_month", "'$60000' is no number"),
    "money with a comma": ("usd_per_month: 60000", "usd_per_month: '60,000'", "budget.usd_per_month", "'60,000' is no number"),
    "money in thousands": ("usd_per_month: 60000", "usd_per_month: 60k", "budget.usd_per_month", "'60k' is no number"),
    "money below zero": ("usd_per_month: 60000", "usd_per_month: -1", "budget.usd_per_month", "-1 is too small: it must be greater than 0"),
    "money without end": ("usd_per_month: 60000", "usd_per_month: .inf", "budget.usd_per_month", "is no number"),
    "money that is not a number": ("usd_per_month: 60000", "usd_per_month: .nan", "budget.usd_per_month", "is no number"),
    "money as yes": ("usd_per_month: 60000", "usd_per_month: yes", "budget.usd_per_month", "is no number"),
    "a price of another unit": ("on_demand: 41.28", "on_demand: 41.28 USD", "cloud.price.p5.48xlarge.on_demand", "is no number"),
    "a price without end": ("on_demand: 41.28", "on_demand: .inf", "cloud.price.p5.48xlarge.on_demand", "is no number"),
    "a price far from the list's": ("on_demand: 41.28", "on_demand: 4128", "cloud.price.p5.48xlarge.on_demand", "USD per hour of one instance", "warning"),
    "a price of a type that nobody rents": ("p5.48xlarge: {on_demand: 41.28}", "p4de.24xlarge: {on_demand: 41.28}", "cloud.price.p4de.24xlarge", "no pool or group has p4de.24xlarge", "warning"),
    "a ceiling of an unknown account in capitals": ("usd_per_month: 60000", "usd_per_month: 60000, accounts: {Vision: 100}", "budget.accounts.Vision", "lower case"),
    "a budget below one hour": ("usd_per_month: 60000", "usd_per_month: 5", "budget.usd_per_month", "less than an hour of any pool's instance", "warning"),
    "a mail address without @": ("platform@example.org", "platform", "budget.notify[0]", "'platform' is no mail address"),
    "a mail address without a domain": ("platform@example.org", "platform@", "budget.notify[0]", "is no mail address"),
    "two mail addresses in one": ("[platform@example.org, finance@example.org]", "['platform@example.org, finance@example.org']", "budget.notify[0]", "is no mail address"),
    "a name beside the address": ("platform@example.org", "Platform <platform@example.org>", "budget.notify[0]", "is no mail address"),
    "a mail address twice": ("finance@example.org", "platform@example.org", "budget.notify[1]", "twice"),
    # numbers
    "a number in quotes with words": ("max_nodes: 8", "max_nodes: eight", "cloud.pools[0].max_nodes", "'eight' is no whole number"),
    "half a node": ("max_nodes: 8", "max_nodes: 2.5", "cloud.pools[0].max_nodes", "2.5 is no whole number"),
    "too many nodes": ("max_nodes: 8", "max_nodes: 8000", "cloud.pools[0].max_nodes", "8000 is too large"),
    "yes for a number": ("max_nodes: 8", "max_nodes: yes", "cloud.pools[0].max_nodes", "is no number"),
    "a rack unit in octal": ("units: [48]", "units: [010]", "halls[0].nodes[0].units[0]", "010 is octal to YAML: write 8 or 10"),
    "text where yes or no belongs": ("placement_group: true", "placement_group: maybe", "cloud.groups[0].placement_group", "'maybe' is neither true nor false"),
    "links below zero": ("infiniband_links: 8\n            bmc: {addresses: \"https://10.30.16.[11-14]\"", "infiniband_links: -1\n            bmc: {addresses: \"https://10.30.16.[11-14]\"", "halls[0].nodes[1].infiniband_links", "-1 is too small"),
    # ids and paths
    "an image's name for its id": ("ami-0123456789abcdef0", "ubuntu-24.04", "cloud.groups[0].image", "write for example ami-"),
    "an image's id that is too short": ("ami-0123456789abcdef0", "ami-123", "cloud.groups[0].image", "write for example ami-"),
    "a gateway of another kind": ("0a1b2c3d-4e5f-6789-abcd-ef0123456789", "vgw-0123456789", "cloud.network.hall_link.gateway_id", "write for example"),
    "a relative shared folder": ("munge_key: \"aws-secretsmanager:prod/munge-key\"", "munge_key: \"aws-secretsmanager:prod/munge-key\", shared_filesystem: shared", "scheduler.shared_filesystem", "write for example /shared"),
    "a shared folder with a blank": ("munge_key: \"aws-secretsmanager:prod/munge-key\"", "munge_key: \"aws-secretsmanager:prod/munge-key\", shared_filesystem: /my share", "scheduler.shared_filesystem", "'/my share' isn't of the form that is needed here; write for example /shared"),
    "the root as shared folder": ("munge_key: \"aws-secretsmanager:prod/munge-key\"", "munge_key: \"aws-secretsmanager:prod/munge-key\", shared_filesystem: /", "scheduler.shared_filesystem", "write for example /shared"),
    "ports backwards": ("munge_key: \"aws-secretsmanager:prod/munge-key\"", "munge_key: \"aws-secretsmanager:prod/munge-key\", srun_ports: 64000-61001", "scheduler.srun_ports", "64000-61001' is no range of ports"),
    "ports that are none": ("munge_key: \"aws-secretsmanager:prod/munge-key\"", "munge_key: \"aws-secretsmanager:prod/munge-key\", srun_ports: 61001-99999", "scheduler.srun_ports", "65535"),
    "a head that isn't there": ("scheduler: {head: head", "scheduler: {head: haed", "scheduler.head", "'haed'"),
    "a user with a blank": ("halls:\n", "ssh: {user: my user}\n    halls:\n", "ssh.user", "'my user'"),
    "an empty user": ("halls:\n", "ssh: {user: ''}\n    halls:\n", "ssh.user", "empty"),
    "a scheduler that isn't known": ("scheduler: {head: head", "scheduler: {kind: pbs, head: head", "scheduler", "allowed are slurm and kubernetes"),
    "a CPU list that isn't one": ("slurm: {cpus: 112, memory_mb: 2000000}\n          - names: dgx[05-08]", "slurm: {cpus: 112, memory_mb: 2000000, gpu_cores: [0..55]}\n          - names: dgx[05-08]", "halls[0].nodes[1].slurm", "gpu_cores"),
    "memory in GB": ("slurm: {cpus: 112, memory_mb: 2000000}\n          - names: dgx[05-08]", "slurm: {cpus: 112, memory_mb: 2000}\n          - names: dgx[05-08]", "halls[0].nodes[1].slurm.memory_mb", "MiB", "warning"),
    "a misspelt key": ("max_nodes: 8", "max_node: 8", "cloud.pools[0].max_node", "did you mean 'max_nodes'"),
    "a key in capitals": ("max_nodes: 8", "Max_Nodes: 8", "cloud.pools[0].Max_Nodes", "did you mean 'max_nodes'"),
    "a key with a hyphen": ("max_nodes: 8", "max-nodes: 8", "cloud.pools[0].max-nodes", "did you mean 'max_nodes'"),
    "a number as key": ("max_nodes: 8", "max_nodes: 8, 7: 8", "cloud.pools[0].7", "there is no such key"),
    "a reservation's id of another kind": (P5, P5 + ", capacity_reservation: r-0123", "cloud.pools[0].capacity_reservation", "write for example cr-"),
    "a day that isn't one": (P5, P5 + ", capacity_ends: 2026-13-01T00:00:00Z", "cloud.pools[0].capacity_ends", "is no point in time; write for example 2026-12-01T11:30:00Z"),
    "a day as a number": (P5, P5 + ", capacity_ends: 20261201", "cloud.pools[0].capacity_ends", "is no point in time; write for example 2026-12-01T11:30:00Z"),
}  # fmt: skip


def findings(path):
    try:
        return stack.load_valid(path, now=NOW).warnings
    except load.ConfigError as error:
        return error.findings


def mistaken(tmp_path, text):
    """The good file, changed, with its lock beside it."""
    path = tmp_path / PROD.name
    path.write_text(text)
    (tmp_path / "prod.lock.yaml").write_text((PROD.parent / "prod.lock.yaml").read_text())
    return path


def test_the_good_file_has_no_finding(tmp_path):
    assert findings(mistaken(tmp_path, GOOD)) == []


@pytest.mark.parametrize("name", MISTAKES)
def test_no_mistake_is_accepted_in_silence(tmp_path, name):
    old, new, path, words, *rest = MISTAKES[name]
    assert old in GOOD, "the good file has changed: the mistake can't be made in it any more"
    file = mistaken(tmp_path, GOOD.replace(old, new, 1))
    said = findings(file)
    (severity,) = rest or ("error",)
    found = [each for each in said if words in each.message and path in each.path and each.severity == severity]
    assert found, f"accepted, or said otherwise: {[str(each) for each in said]}"
    for each in said:
        assert not re.search(
            r"pydantic|string_|input should|valid string|\n|value error", each.message, re.IGNORECASE
        ), each
        assert len(each.message) < 400, each


def test_less_gpu_memory_may_be_chosen(tmp_path):
    text = GOOD.replace("platform: dgx-h100\n            rack: r02", "platform: dgx-a100-640gb\n            rack: r02")
    file = mistaken(tmp_path, text.replace("{name: p4d,", "{name: p4d, less_gpu_memory: true,"))
    assert [each for each in findings(file) if each.rule == "gpu-memory"] == []


def test_a_region_without_prices_is_told_what_to_write(tmp_path):
    file = mistaken(tmp_path, GOOD.replace("us-east-1", "eu-west-1").replace("price:\n", "price:\n", 1))
    said = [each.message for each in findings(file) if each.rule == "no-price"]
    assert said == [
        f"the catalogue has no {market} price of p4d.24xlarge in eu-west-1; write USD per hour of one instance under "
        f"cloud: `price: {{p4d.24xlarge: {{{key}: USD}}}}` (in us-east-1 it is {usd})"
        for market, key, usd in (
            ("spot", "spot", "7.246, estimate from the spot advisor"),
            ("on-demand", "on_demand", "21.9576, list price"),
        )
    ]


def test_there_are_many():
    assert len(MISTAKES) >= 60
