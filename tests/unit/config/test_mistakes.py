"""The mistakes that people make in stack files: none is accepted in silence. Each is made as a person would make it, by
a change of the text of a good file.
"""

# ruff: noqa: E501, RUF001

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from ironburst import cli
from ironburst.cli import validate
from ironburst.config import load, stack
from ironburst.config.checks import check

PROD = Path(__file__).parents[3] / "stacks/Pulumi.prod.yaml"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
GOOD = PROD.read_text()
DGX = "names: dgx[01-04]"
P5 = "name: p5, instance_type: p5.48xlarge, max_nodes: 8"
BURST = "wait_target: {mean: 20m, p99: 8h, p999: 40h, max: 7d, gpu_hour_weighted: 16h}"
NODE = "addresses: 10.30.0.[11-14]"
PRICE = "        p5.48xlarge: {on_demand: 41.28} # with the savings plan of 2026-08\n"
HEAD_BMC = "https://10.30.16.10"
MUNGE = 'munge_key: "aws-secretsmanager:prod/munge-key"'
BUDGET = "usd_per_month: 60000"
P5_PLACES = "zones: [us-east-1a, us-east-1b], markets: [on-demand], max_run: 48h"
SECOND_BMC = 'password: "aws-secretsmanager:prod/bmc"}\n          - names: dgx[01-04]'
SIZE = "slurm: {cpus: 112, memory_mb: 2000000}\n          - names: dgx[05-08]"
LINKS = 'infiniband_links: 8\n            bmc: {addresses: "https://10.30.16.[11-14]"'
REGION = "  aws:region: us-east-1\n"
ZONES = "zones: [us-east-1a, us-east-1b]\n        hall"
VPC = "cidr: 10.31.0.0/16"

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
    "no section where one belongs": ("budget: {usd_per_month: 60000, total_usd_per_month: 130000, notify: [platform@example.org, finance@example.org]}", "budget: 60000", "budget", "60000 is no section; write keys below it"),
    "an empty section": ("scheduler: {head: head, munge_key: \"aws-secretsmanager:prod/munge-key\"}", "scheduler:", "scheduler", "is empty"),
    "the key of another case": ("ironburst:cluster:", "ironburst:Cluster:", "config", "has no key ironburst:cluster; declare the cluster there; ironburst:Cluster is none"),
    "a key of the file that isn't ours": ("  ironburst:cluster:", "  ironburst:clusters: 3\n  ironburst:cluster:", "ironburst:clusters", "there is no such key"),
    # versions without quotes
    "cuda without quotes": ('cuda: "13.0"', "cuda: 13.0", "software.cuda", 'quote it: cuda: "13.0"'),
    "cuda rounded by YAML": ('cuda: "13.0"', "cuda: 12.10", "software.cuda", "quote it"),
    "slurm without quotes": ('slurm: "24.11"', "slurm: 24.11", "software.slurm", 'quote it: slurm: "24.11"'),
    "slurm as 24.5": ('slurm: "24.11"', 'slurm: "24.5"', "software.slurm", "'24.5'"),
    "a driver with two parts too many": ('driver: "580"', "driver: 580.95.05.1", "software.driver", "580.95.05.1"),
    "a driver that is no number": ('driver: "580"', "driver: latest", "software.driver", "'latest'"),
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
    "true for a duration": ("max_run: 48h", "max_run: true", "cloud.pools[0].max_run", "True is not a duration"),
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
    "an empty serial": (NODE, NODE + "\n            serials: ['', a, b, c]", "halls[0].nodes[1].serials", "has an empty text in it"),
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
    "rented GPUs that are less than home's": ("      untyped_jobs_may_use: [] # p4d is for jobs that name it: --gres=gpu:a100:8\n", "", "cloud.pools[1]", "jobs that ask for GPUs without a type mean at least home's H100 SXM5 80GB, and this pool has A100 SXM4 40GB: it is rented only for jobs that say --gres=gpu:a100", "warning"),
    "a pool that untyped jobs may use, and that isn't there": ("untyped_jobs_may_use: []", "untyped_jobs_may_use: [g6e]", "burst.untyped_jobs_may_use[0]", "there is no pool 'g6e'; the pools are p5, p4d"),
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
    "more time to save than the notice leaves": ("munge_key: \"aws-secretsmanager:prod/munge-key\"", "munge_key: \"aws-secretsmanager:prod/munge-key\", kill_wait: 115s", "scheduler.kill_wait", "115s is longer than what the cloud's notice of 120s leaves a job beside a tick of 10s: write 100s or less"),
    "a relay as a URL": ("munge_key: \"aws-secretsmanager:prod/munge-key\"", "munge_key: \"aws-secretsmanager:prod/munge-key\", mail: {relay: 'smtp://mail.example.org', sender: slurm@example.org}", "scheduler.mail.relay", "write for example mail.example.org:25"),
    "a sender without a domain": ("munge_key: \"aws-secretsmanager:prod/munge-key\"", "munge_key: \"aws-secretsmanager:prod/munge-key\", mail: {relay: mail.example.org, sender: slurm}", "scheduler.mail.sender", "'slurm' is no mail address"),
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
    # more of each, as people make them
    "a day above the month": (BUDGET, BUDGET + ", usd_per_day: 90000", "budget.usd_per_day", "90000 is more than usd_per_month, 60000, so it is no ceiling: lower"),
    "a day below an hour": (BUDGET, BUDGET + ", usd_per_day: 1", "budget.usd_per_day", "1 is less than an hour of any pool's instance (7.246): nothing can be", "warning"),
    "a budget of zero": (BUDGET, "usd_per_month: 0", "budget.usd_per_month", "0 is too small: it must be greater than 0"),
    "a currency behind the number": (BUDGET, BUDGET + " EUR", "budget.usd_per_month", "'60000 EUR' is no number; write digits alone, as in 1500 (no unit,"),
    "a budget in euros": (BUDGET, "eur_per_month: 60000", "budget.usd_per_month", "is needed here and absent"),
    "an account above the month": (BUDGET, BUDGET + ", accounts: {vision: 70000}", "budget.accounts.vision", "70000 is more than usd_per_month, 60000, so it is no ceiling: lower"),
    "a range backwards": (DGX, "names: dgx[04-01]", "halls[0].nodes[1].names", "'dgx[04-01]': 04-01 runs backwards"),
    "a range of two widths": (DGX, "names: dgx[01-004]", "halls[0].nodes[1].names", "'dgx[01-004]': 01-004 mixes widths; write both ends with the same"),
    "a range with a zero at its end": (DGX, "names: dgx[1-04]", "halls[0].nodes[1].names", "'dgx[1-04]': 1-04 mixes widths; write both ends with the same number"),
    "a range in round brackets": (DGX, "names: dgx(01-04)", "halls[0].nodes[1].names", "'dgx(01-04)' has round brackets; write dgx[01-04]"),
    "a range with dots": (DGX, "names: 'dgx[01..04]'", "halls[0].nodes[1].names", "'dgx[01..04]': [01..04] is not a range; write [01-04] or [1,3-5]"),
    "a range as Ansible writes it": (DGX, "names: 'dgx[01:04]'", "halls[0].nodes[1].names", "'dgx[01:04]': [01:04] is not a range; write [01-04] or [1,3-5]"),
    "a range that is not closed": (DGX, "names: 'dgx[01-04'", "halls[0].nodes[1].names", "'dgx[01-04' has an unmatched bracket"),
    "names that are numbers": (DGX, "names: [1, 2, 3, 4]", "halls[0].nodes[1].names", "is not a name or a range; write text such as dgx[01-04], or a list of"),
    "a name twice but for capitals": ("names: dgx[05-08]", "names: [dgx05, dgx06, dgx07, DGX04]", "halls[0].nodes[2].names[3]", "node name 'DGX04' is used already at"),
    "trailing space in quotes": ("name: prod\n", "name: 'prod '\n", "name", "'prod ' isn't of the form that is needed here; write a small letter"),
    "no-break spaces that indent": ("    name: prod\n", "  \xa0\xa0name: prod\n", "", "line 6: has a no-break space (U+00A0), its character 3, as pasted"),
    "a no-break space behind a value": ("name: prod\n", "name: prod\xa0\n", "name", "has a no-break space (U+00A0), its character 5, as pasted from a"),
    "a no-break space behind a range": (DGX, DGX + "\xa0", "halls[0].nodes[1].names", "has a no-break space (U+00A0), its character 11, as pasted from a"),
    "curly quotes": ('cuda: "13.0"', "cuda: “13.0”", "software.cuda", "has a typographic quote (U+201C), its character 1, as pasted from a"),
    "curly quotes name": ("name: prod\n", "name: “prod”\n", "name", "has a typographic quote (U+201C), its character 1, as pasted from a"),
    "curly quote secret": ('"aws-secretsmanager:prod/munge-key"', "“aws-secretsmanager:prod/munge-key”", "scheduler.munge_key", "has a typographic quote (U+201C), its character 1, as pasted from a"),
    "en dash range": (DGX, "names: dgx[01–04]", "halls[0].nodes[1].names", "has a typographic dash (U+2013), its character 7, as pasted from a"),
    "an invisible character in a name": ("name: prod\n", "name: prod\u200b\n", "name", "has a space of no width (U+200B), its character 5, as pasted from a"),
    "an invisible character in a reference": ('prod/munge-key"}', 'prod/munge-key\u200b"}', "scheduler.munge_key", "has a space of no width (U+200B), its character 34, as pasted from a"),
    "a key in clear text": (MUNGE, "munge_key: MUNGE-abc", "scheduler.munge_key", "the given value is not a secret reference: write env:NAME, file:PATH"),
    "a variable that rented nodes cannot read": (MUNGE, "munge_key: env:MUNGE", "scheduler.munge_key", "must be a reference to aws-secretsmanager: where there are burst pools:"),
    "a file that rented nodes cannot read": (MUNGE, "munge_key: file:secrets/munge.key", "scheduler.munge_key", "must be a reference to aws-secretsmanager: where there are burst pools:"),
    "a file outside": (MUNGE, "munge_key: file:../../munge.key", "scheduler.munge_key", "must be a reference to aws-secretsmanager: where there are burst pools:"),
    "a reference with a blank": (MUNGE, 'munge_key: "aws-secretsmanager: prod/munge-key"', "scheduler.munge_key", "'aws-secretsmanager: prod/munge-key' is no reference that resolves: a"),
    "a blank before a reference": (MUNGE, 'munge_key: " aws-secretsmanager:prod/munge-key"', "scheduler.munge_key", "the given value is not a secret reference: write env:NAME, file:PATH"),
    "a reference in capitals": (MUNGE, 'munge_key: "AWS-SecretsManager:prod/munge-key"', "scheduler.munge_key", "the given value is not a secret reference: write env:NAME, file:PATH"),
    "env name with dollar": (MUNGE, 'munge_key: "env:$MUNGE"', "scheduler.munge_key", "'env:$MUNGE' is no reference that resolves: write the variable's name"),
    "env name lower hyphen": (SECOND_BMC, 'password: "env:BMC-PASSWORD"}\n          - names: dgx[01-04]', "halls[0].nodes[0].bmc.password", "'env:BMC-PASSWORD' is no reference that resolves: write the"),
    "a file without a name": (SECOND_BMC, 'password: "file:"}\n          - names: dgx[01-04]', "halls[0].nodes[0].bmc.password", "'file:' is not a secret reference: write env:NAME, file:PATH"),
    "password vault": (SECOND_BMC, 'password: "vault:secret/bmc"}\n          - names: dgx[01-04]', "halls[0].nodes[0].bmc.password", "the given value is not a secret reference: write env:NAME, file:PATH"),
    "Pulumi's own secret": (SECOND_BMC, "password: {secure: v1:abc}}\n          - names: dgx[01-04]", "halls[0].nodes[0].bmc.password", "is a section where one text belongs"),
    "a reference where a user belongs": ("username: ironburst, password", "username: 'env:BMC_USER', password", "halls[0].nodes[0].bmc.username", "'env:BMC_USER' is sent to the BMC as it stands; write the name itself"),
    "partition blank": (MUNGE, MUNGE + ", home_partition: my home", "scheduler.home_partition", "'my home' isn't of the form that is needed here; write for example"),
    "partition ALL": (MUNGE, MUNGE + ", home_partition: ALL", "scheduler.home_partition", "'ALL' is a word of slurm.conf's own; call the partition otherwise, as"),
    "partition DEFAULT": (MUNGE, MUNGE + ", home_partition: DEFAULT", "scheduler.home_partition", "'DEFAULT' is a word of slurm.conf's own; call the partition"),
    "home called as a pool's partition": (MUNGE, MUNGE + ", home_partition: burst-p5", "cloud.pools[0].name", "partition 'burst-p5' is used already at"),
    "racks same name": ("{name: r02, units: 48}", "{name: r01, units: 48}", "halls[0].racks[1].name", "rack of hall-a 'r01' is used already at"),
    "no racks where nodes name them": ("racks: [{name: r01, units: 48}, {name: r02, units: 48}, {name: r03, units: 48}]", "racks: []", "halls[0].nodes[0].rack", "'r01' is not a rack of hall-a; known: none"),
    "units outside": ("units: [1, 9, 17, 25]", "units: [1, 9, 17, 45]", "halls[0].nodes[1].units", "dgx04 would reach unit 52 of rack r01, which has 48"),
    "units twice": ("units: [1, 9, 17, 25]", "units: [1, 9, 17, 17]", "halls[0].nodes[1].units", "dgx04 and dgx03 both take unit 17 of rack r01; move one"),
    "units overlap": ("units: [1, 9, 17, 25]", "units: [1, 5, 17, 25]", "halls[0].nodes[1].units", "dgx02 and dgx01 both take unit 5 of rack r01; move one"),
    "a rack that is not declared": ("rack: r01\n            units: [1,", "rack: r04\n            units: [1,", "halls[0].nodes[1].rack", "'r04' is not a rack of hall-a; known: r01, r02, r03"),
    "units 0": ("units: [1, 9, 17, 25]", "units: [0, 9, 17, 25]", "halls[0].nodes[1].units[0]", "0 is too small: it must be greater than 0"),
    "height 0": ("height: 1", "height: 0", "halls[0].nodes[0].height", "0 is too small: it must be greater than 0"),
    "address dup": ("addresses: 10.30.0.[15-18]", "addresses: 10.30.0.[14-17]", "halls[0].nodes[2].addresses[0]", "address '10.30.0.14' is used already at"),
    "bmc dup": ("https://10.30.16.[15-18]", "https://10.30.16.[14-17]", "halls[0].nodes[2].bmc.addresses[0]", "BMC address 'https://10.30.16.14' is used already at"),
    "BMCs in the nodes' network": ("https://10.30.16.[15-18]", "https://10.30.0.[15-18]", "halls[0].nodes[2].bmc.addresses[0]", "10.30.0.15 is not in 10.30.16.0/24, the BMC network of hall-a"),
    "address leading zero": (NODE, "addresses: 10.30.0.0[11-14]", "halls[0].nodes[1].addresses[0]", "'10.30.0.011' is not an IPv4 address"),
    "address with mask": (NODE, NODE + "/20", "halls[0].nodes[1].addresses[0]", "'10.30.0.11/20' is not an IPv4 address; write it without its length"),
    "addresses as a person says them": (NODE, "addresses: 10.30.0.11-14", "halls[0].nodes[1].addresses", "gives 1 values for 4 nodes; give one each"),
    "address is ipv6": ("addresses: 10.30.0.10", "addresses: 'fd00::10'", "halls[0].nodes[0].addresses[0]", "'fd00::10' is not an IPv4 address"),
    "half an address": ("addresses: 10.30.0.10", "addresses: 10.30", "halls[0].nodes[0].addresses", "10.30 is not a name or a range; write text such as dgx[01-04], or a"),
    "a netmask": ("cidr: 10.30.0.0/20", "cidr: 10.30.0.0/255.255.240.0", "halls[0].cidr", "'10.30.0.0/255.255.240.0' is not an IPv4 network, but an address in"),
    "cidr /33": ("cidr: 10.30.0.0/20", "cidr: 10.30.0.0/33", "halls[0].cidr", "'10.30.0.0/33' is not an IPv4 network; write for example 10.0.0.0/16"),
    "everything as network": ("cidr: 10.30.0.0/20", "cidr: 0.0.0.0/0", "halls[0].cidr", "'0.0.0.0/0' holds no network of hosts; take one of 10.0.0.0/8,"),
    "a network too small for its zones": (VPC, "cidr: 10.31.0.0/29", "cloud.network.cidr", "10.31.0.0/29 is too small for 2 zones; AWS needs at least a /24 here"),
    "BMCs on loopback": ("bmc_cidr: 10.30.16.0/24", "bmc_cidr: 127.0.16.0/24", "halls[0].bmc_cidr", "'127.0.16.0/24' is this host's own: only emulated BMCs answer there", "warning"),
    "cidr loopback": (VPC, "cidr: 127.0.0.0/16", "cloud.network.cidr", "'127.0.0.0/16' is this host's own; take one of 10.0.0.0/8,"),
    "cidr link local": (VPC, "cidr: 169.254.0.0/16", "cloud.network.cidr", "'169.254.0.0/16' is for one link alone; take one of 10.0.0.0/8,"),
    "cidr multicast": (VPC, "cidr: 224.0.0.0/16", "cloud.network.cidr", "'224.0.0.0/16' holds no network of hosts; take one of 10.0.0.0/8,"),
    "the hall's network in the cloud": (VPC, "cidr: 10.30.0.0/16", "cloud.network.cidr", "10.30.0.0/16 overlaps 10.30.0.0/20 at"),
    "the BMCs' network in the hall's": ("bmc_cidr: 10.30.16.0/24", "bmc_cidr: 10.30.0.0/24", "halls[0].bmc_cidr", "10.30.0.0/24 overlaps 10.30.0.0/20 at"),
    "a hall's network without its nodes": ("cidr: 10.30.0.0/20", "cidr: 8.8.0.0/20", "halls[0].nodes[0].addresses[0]", "10.30.0.10 is not in 8.8.0.0/20, hall hall-a"),
    "a zone of another region": (ZONES, "zones: [us-west-2a, us-east-1b]\n        hall", "cloud.network.zones[0]", "'us-west-2a' is not a zone of us-east-1; write for example us-east-1a"),
    "a pool's zone that has no subnet": (P5_PLACES, "zones: [us-east-1a, us-east-1c], markets: [on-demand], max_run: 48h", "cloud.pools[0].zones[1]", "'us-east-1c' is not in cloud.network.zones (us-east-1a, us-east-1b)"),
    "a type without a price": ("instance_type: p4d.24xlarge, max_nodes: 4, zones: [us-east-1a, us-east-1b]", "instance_type: p5e.48xlarge, max_nodes: 4, zones: [us-east-1a, us-east-1b]", "cloud.price", "the catalogue has no price of p5e.48xlarge in us-east-1; write USD per hour"),
    "a zone that nobody has seen": (ZONES, "zones: [us-east-1a, us-east-1b, us-east-1z]\n        hall", "cloud.network.zones[2]", "the catalogue knows no 'us-east-1z', but us-east-1a, us-east-1b,", "warning"),
    "zone id": (ZONES, "zones: [use1-az1, us-east-1b]\n        hall", "cloud.network.zones[0]", "'use1-az1' is not a zone of us-east-1; write for example us-east-1a"),
    "local zone": (ZONES, "zones: [us-east-1a, us-east-1b, us-east-1-bos-1a]\n        hall", "cloud.network.zones[2]", "'us-east-1-bos-1a' is not a zone of us-east-1; write for example"),
    "zone as text": (ZONES, "zones: us-east-1a\n        hall", "cloud.network.zones", "'us-east-1a' is no list; write [VALUE, VALUE], or one a line behind a"),
    "no zones": (ZONES, "zones: []\n        hall", "cloud.network.zones", "has too few items: at least 1"),
    "a type without GPUs": ("instance_type: p4d.24xlarge", "instance_type: m7i.2xlarge", "cloud.pools[1].instance_type", "Unknown instance type 'm7i.2xlarge': did you mean 'g7.2xlarge'?"),
    "another cloud's type": ("instance_type: p4d.24xlarge", "instance_type: Standard_ND96isr_H100_v5", "cloud.pools[1].instance_type", "Unknown instance type 'Standard_ND96isr_H100_v5': the catalogue has"),
    "type upper": ("instance_type: p4d.24xlarge", "instance_type: P4d.24xlarge", "cloud.pools[1].instance_type", "Unknown instance type 'P4d.24xlarge': did you mean 'p4d.24xlarge'?"),
    "type no dot": ("instance_type: p4d.24xlarge", "instance_type: p4d24xlarge", "cloud.pools[1].instance_type", "Unknown instance type 'p4d24xlarge': did you mean 'p4d.24xlarge'?"),
    "a type with another accelerator": ("instance_type: p4d.24xlarge", "instance_type: trn1.32xlarge", "cloud.pools[1].instance_type", "trn1.32xlarge has no NVIDIA GPU that the catalogue knows; choose a"),
    "pools same name": ("{name: p4d,", "{name: p5,", "cloud.pools[1].name", "partition 'burst-p5' is used already at"),
    "pool like group": ("{name: p4d,", "{name: inference,", "cloud.pools[1].name", "node name 'inference-1' is used already at"),
    "pool max 0": ("max_nodes: 4", "max_nodes: 0", "cloud.pools[1].max_nodes", "0 is too small: it must be greater than 0"),
    "pool max -1": ("max_nodes: 4", "max_nodes: -4", "cloud.pools[1].max_nodes", "-4 is too small: it must be greater than 0"),
    "a number with an exponent": ("max_nodes: 4", "max_nodes: 1e3", "cloud.pools[1].max_nodes", "'1e3' is no whole number; write digits alone, as in 8"),
    "a number in quotes": ("max_nodes: 4", "max_nodes: '4'", "cloud.pools[1].max_nodes", "'4' is text; write it without quotes: 4"),
    "true in quotes": ("placement_group: true", "placement_group: 'true'", "cloud.groups[0].placement_group", "'true' is text; write it without quotes: true"),
    "1 for true": ("placement_group: true", "placement_group: 1", "cloud.groups[0].placement_group", "1 is neither true nor false"),
    "long jobs on spot without checkpoints": ("markets: [spot, on-demand]", "markets: [spot], max_run: 3d", "cloud.pools[1].checkpoint", "a spot node may be taken back, and up to 3d of a job's work with it:", "warning"),
    "markets text": ("markets: [spot, on-demand]", "markets: spot", "cloud.pools[1].markets", "'spot' is no list; write [VALUE, VALUE], or one a line behind a `-`"),
    "markets twice": ("markets: [spot, on-demand]", "markets: [spot, spot]", "cloud.pools[1].markets", "names a market twice"),
    "markets empty": ("markets: [spot, on-demand]", "markets: []", "cloud.pools[1].markets", "has too few items: at least 1"),
    "spot as a key": ("markets: [spot, on-demand]", "spot: true", "cloud.pools[1].spot", "there is no such key; allowed here: name, instance_type,"),
    "negative price": ("on_demand: 41.28", "on_demand: -41.28", "cloud.price.p5.48xlarge.on_demand", "-41.28 is too small: it must be greater than 0"),
    "price 0": ("on_demand: 41.28", "on_demand: 0", "cloud.price.p5.48xlarge.on_demand", "0 is too small: it must be greater than 0"),
    "price per gpu": ("on_demand: 41.28", "on_demand: 5.16", "cloud.price.p5.48xlarge.on_demand", "5.16, and 55.04 is the price in us-east-1: it is USD per hour of one", "warning"),
    "a price in hundreds": ("on_demand: 41.28", "on_demand: 0.4128", "cloud.price.p5.48xlarge.on_demand", "0.4128, and 55.04 is the price in us-east-1: it is USD per hour of", "warning"),
    "a price without its market": ("p5.48xlarge: {on_demand: 41.28}", "p5.48xlarge: 41.28", "cloud.price.p5.48xlarge", "41.28 is no section; write keys below it"),
    "price hyphen": ("{on_demand: 41.28}", "{on-demand: 41.28}", "cloud.price.p5.48xlarge.on-demand", "there is no such key; did you mean 'on_demand'?"),
    "a price that says nothing": ("p5.48xlarge: {on_demand: 41.28}", "p5.48xlarge: {}", "cloud.price.p5.48xlarge", "says no price; write on_demand or spot, or leave the type out"),
    "a decimal comma": ("on_demand: 41.28", "on_demand: '41,28'", "cloud.price.p5.48xlarge.on_demand", "'41,28' is no number; write digits alone, as in 1500 (no unit, sign"),
    "spot above on-demand": ("{on_demand: 41.28}", "{on_demand: 41.28, spot: 50}", "cloud.price.p5.48xlarge", "spot 50 is more than on_demand, 41.28: are the two exchanged?", "warning"),
    "p999>max": ("p999: 40h", "p999: 8d", "burst.wait_target", "has p999 8d, longer than max, 7d: lower p999 or raise max"),
    "mean > p99": ("mean: 20m", "mean: 10h", "burst.wait_target.mean", "is 10h, longer than p99, 8h: lower it", "warning"),
    "wait missing mean": ("mean: 20m, ", "", "burst.wait_target.mean", "is needed here and absent"),
    "wait 20 min words": (BURST, "wait_target: 20 min", "burst.wait_target.mean", "'20 min' is not a duration; write a number above zero with a unit, as"),
    "wait 20m with space": (BURST, "wait_target: 20 m", "burst.wait_target.mean", "'20 m' is not a duration; write a number above zero with a unit, as"),
    "wait upper": (BURST, "wait_target: 20M", "burst.wait_target.mean", "'20M' is not a duration; write a number above zero with a unit, as in"),
    "wait and limit": (BURST, BURST + "\n      wait_limit: 1h", "burst", "has both wait_limit and wait_target, and a target gives each job a"),
    "a share that there is not": (BURST, BURST + "\n      spot_share: 150", "burst.spot_share", "there is no such key; allowed here: tick, wait_limit, wait_target,"),
    "hours per GPU-hour 0": (BURST, BURST + "\n      hours_per_gpu_hour: 0", "burst.hours_per_gpu_hour", "0 is too small: it must be at least 0.001"),
    "hours per GPU-hour nan": (BURST, BURST + "\n      hours_per_gpu_hour: .nan", "burst.hours_per_gpu_hour", ".nan is no number; write digits alone, as in 1500 (no unit, sign of"),
    "hours per GPU-hour 100": (BURST, BURST + "\n      hours_per_gpu_hour: 100", "burst.hours_per_gpu_hour", "100 is too large: it must be at most 10"),
    "a type that the zone may not offer": ("instance_type: p4d.24xlarge, max_nodes: 4", "instance_type: p6-b300.48xlarge, max_nodes: 4", "cloud.pools[1].zones[1]", "p6-b300.48xlarge may not be offered in us-east-1b: the catalogue", "warning"),
    "GPUs of a hall": ("name: hall-a\n", "name: hall-a\n        gpus: h100\n", "halls[0].gpus", "there is no such key; allowed here: name, cidr, bmc_cidr, racks,"),
    "images as a list": ("      images: {build_type: m7i.2xlarge}", "      images: [build_type]", "cloud.images", "is no section; write keys below it"),
    "data in a list": ("      price:\n", "      data: [imagenet]\n      price:\n", "cloud.data", "is no section; write keys below it"),
    "days are not months": ("max_run: 48h", "max_run: 2mo", "cloud.pools[0].max_run", "'2mo' is not a duration; write a number above zero with a unit, as in"),
    "serial with a zero first": (NODE, NODE + "\n            serials: [0891, a, b, c]", "halls[0].nodes[1].serials[0]", "0891 loses its 0 in Pulumi; quote it"),
    "a zone with a blank": ("[us-east-1a, us-east-1b]\n        hall", "['us-east-1a ', us-east-1b]\n        hall", "cloud.network.zones[0]", "'us-east-1a ' is not a zone of us-east-1; write for example us-east-1a"),
    "units as text": ("units: [48]", "units: ['48']", "halls[0].nodes[0].units", "'48' is text; write it without quotes: 48"),
    "a rack of 600": ("{name: r03, units: 48}", "{name: r03, units: 600}", "halls[0].racks[2].units", "600 is too large: it must be at most 60"),
    "mac with dots": (NODE, NODE + "\n            macs: ['5254.0012.3456', '52:54:00:12:34:57', '52:54:00:12:34:58', '52:54:00:12:34:59']", "halls[0].nodes[1].macs[0]", "'5254.0012.3456' is not a MAC address; write for example"),
    "bmc ftp": ("https://10.30.16.10", "ftp://10.30.16.10", "halls[0].nodes[0].bmc.addresses[0]", "'ftp://10.30.16.10' is not a BMC's URL: write https://ADDRESS"),
    "bmc addresses fewer": ("https://10.30.16.[11-14]", "https://10.30.16.[11-13]", "halls[0].nodes[1].bmc.addresses", "gives 3 values for 4 nodes; give one each"),
    "group reservation and block": ("placement_group: true}", "placement_group: true, capacity_reservation: cr-01, capacity_block: {id: cr-02, ends: 2027-01-01T00:00:00Z}}", "cloud.groups[0].capacity_reservation", "stands beside capacity_block; an instance takes one"),
    "capacity block without end": ("placement_group: true}", "placement_group: true, capacity_block: {id: cr-02}}", "cloud.groups[0].capacity_block.ends", "is needed here and absent"),
    "mig unknown": ("            infiniband_links: 8\n", "            infiniband_links: 8\n            mig: [{profile: 1g.99gb, count: 1}]\n", "halls[0].nodes[1].mig[0].profiles", "is needed here and absent"),
    "shares over": ("    burst:", "    shares: [{team: a, account: a, guaranteed_gpus: 6400}]\n    burst:", "shares", "the guarantees are 6400 GPUs together, and the shared nodes have 64:"),
    "account twice": ("    burst:", "    users: {accounts: [{name: a}, {name: a}]}\n    burst:", "users.accounts[1].name", "account 'a' is there already; write its users in one place"),
    "user of no account list": ("    burst:", "    users: {people: [{name: anna, uid: 1001}], accounts: [{name: a, users: [ana]}]}\n    burst:", "users.accounts[0].users[0]", "user 'ana' isn't declared; users.people has anna"),
    "private key": ("    burst:", "    users: {people: [{name: anna, uid: 1001, keys: ['-----BEGIN OPENSSH PRIVATE KEY-----']}]}\n    burst:", "users.people[0].keys[0]", "is a private key; write the line of the .pub file beside it, and make"),
    "password for user": ("    burst:", "    users: {people: [{name: anna, uid: 1001, password: hunter2}]}\n    burst:", "users.people[0].password", "there is no such key; allowed here: name, uid, group, groups, keys,"),
    "empty names": (DGX, "names: []", "halls[0].nodes[1].names", "is not a name or a range; write text such as dgx[01-04], or a list of"),
    "null names": (DGX, "names:", "halls[0].nodes[1].names", "is not a name or a range; write text such as dgx[01-04], or a list of"),
    "null name": ("name: prod\n", "name:\n", "name", "is empty; write a value, or leave the key out"),
    "a tilde for a name": ("name: prod\n", "name: ~\n", "name", "is empty; write a value, or leave the key out"),
    "a list where a section belongs": ('software: {driver: "580", cuda: "13.0", container_toolkit: 1.18.0, slurm: "24.11", os: ubuntu2404}', "software: [580, 13.0]", "software", "is no section; write keys below it"),
    "a section where a list belongs": ("      pools:\n        - {name: p5", "      pools:\n          x: {name: p5", "", "line 48: is indented otherwise than the lines above that it belongs to"),
    "zone list as text": (P5_PLACES, "zones: 'us-east-1a, us-east-1b', markets: [on-demand]", "cloud.pools[0].zones", "'us-east-1a, us-east-1b' is no list; write [VALUE, VALUE], or one a"),
    "role master": ("role: head", "role: master", "halls[0].nodes[0].role", "'master' isn't known here; allowed: gpu, head, login"),
    "no head role": ("            role: head\n", "", "scheduler.head", "'head' is not a node with role head; nodes with it: none is declared"),
    "head is a dgx": ("scheduler: {head: head", "scheduler: {head: dgx01", "scheduler.head", "'dgx01' is not a node with role head; nodes with it: head"),
    "head is pool": ("scheduler: {head: head", "scheduler: {head: p5", "scheduler.head", "'p5' is not a node with role head; nodes with it: head"),
    "two heads": ("            platform: dgx-h100\n            rack: r01", "            role: head\n            platform: dgx-h100\n            rack: r01", "scheduler.head", "there are 5 head nodes, and the ledger is a file of one of them (SQLite)"),
    "no scheduler": ('    scheduler: {head: head, munge_key: "aws-secretsmanager:prod/munge-key"}\n', "", "scheduler", "is needed here and absent"),
    "cluster twice": ("  ironburst:cluster:\n", "  ironburst:cluster:\n    cluster:\n", "cluster", "there is no such key; allowed here: name, software, ssh, halls,"),
    "pools one level too high": ("      pools:", "    pools:", "", "line 49: is indented otherwise than the lines above that it belongs to"),
    "the budget one level too low": ("    budget:", "      budget:", "cloud.budget", "there is no such key; allowed here: provider, region, groups,"),
    "a version of the file's form": ("    name: prod\n", "    version: 9\n    name: prod\n", "version", "there is no such key; allowed here: name, software, ssh, halls,"),
    "another project's cluster": (REGION, REGION + "  otherproject:cluster: {}\n", "config.otherproject:cluster", "is of another project, so nothing here reads it; the cluster is", "warning"),
    "an alias without its anchor": ("- {name: p4d, instance_type", "- {<<: *p5, name: p4d, instance_type", "", "line 48: has `*p5`, and no `&p5` stands before it; quote it if it is"),
    "the secret key of AWS": (REGION, REGION + "  aws:secretKey: AKIAxyz\n", "config.aws:secretKey", "is a key in clear text, for all who read the repository: leave it"),
    "the access key of AWS": (REGION, REGION + "  aws:accessKey: AKIAIOSFODNN7EXAMPLE\n", "config.aws:accessKey", "is a key in clear text, for all who read the repository: leave it"),
    "an account without quotes": (REGION, REGION + "  aws:allowedAccountIds: [012345678901]\n", "config.aws:allowedAccountIds[0]", "012345678901 loses its 0 in Pulumi; quote it"),
    "account id short": (REGION, REGION + "  aws:allowedAccountIds: ['12345']\n", "config.aws:allowedAccountIds[0]", "'12345' is no AWS account; write its 12 digits in quotes, as in"),
    "account id words": (REGION, REGION + "  aws:allowedAccountIds: [prod]\n", "config.aws:allowedAccountIds[0]", "'prod' is no AWS account; write its 12 digits in quotes, as in"),
    "a misspelt setting of Pulumi's": (REGION, REGION + "  aws:regoin: us-east-1\n", "config.aws:regoin", "Pulumi's AWS provider has no such setting; did you mean aws:region?", "warning"),
    "memory with an exponent": (SIZE, "slurm: {cpus: 112, memory_mb: 2.0e6}\n          - names: dgx[05-08]", "halls[0].nodes[1].slurm.memory_mb", "'2.0e6' is no whole number; write digits alone, as in 8"),
    "memory with its unit": (SIZE, "slurm: {cpus: 112, memory_mb: 2000G}\n          - names: dgx[05-08]", "halls[0].nodes[1].slurm.memory_mb", "'2000G' is no whole number; write digits alone, as in 8"),
    "CPUs by the thousand": (SIZE, "slurm: {cpus: 11200, memory_mb: 2000000}\n          - names: dgx[05-08]", "halls[0].nodes[1].slurm.cpus", "11200 is too large: it must be at most 4096"),
    "sockets partial": (SIZE, "slurm: {cpus: 112, memory_mb: 2000000, sockets: 2}\n          - names: dgx[05-08]", "halls[0].nodes[1].slurm", "needs all of sockets, cores_per_socket and threads_per_core, as"),
    "links by the hundred": (LINKS, 'infiniband_links: 800\n            bmc: {addresses: "https://10.30.16.[11-14]"', "halls[0].nodes[1].infiniband_links", "800 is too large: it must be at most 64"),
    "links by their speed": (LINKS, 'infiniband_links: 400G\n            bmc: {addresses: "https://10.30.16.[11-14]"', "halls[0].nodes[1].infiniband_links", "'400G' is no whole number; write digits alone, as in 8"),
    "max_run < boot": ("max_run: 48h", "max_run: 1m", "cloud.pools[0].max_run", "1m is less than a node may take to boot, 15m: only jobs shorter than", "warning"),
    "a boot longer than the dead man waits": ("max_run: 48h", "boot: 3h", "cloud.pools[0].boot", "until it joins a node hears nobody, and ends itself after"),
    "idle long": ("max_run: 48h", "idle: 30d", "cloud.pools[0].idle", "30d: a node without jobs may be paid for so long; 10m is what it is", "warning"),
    "root disk GB": ("max_run: 48h", "root_disk_gb: 200GB", "cloud.pools[0].root_disk_gb", "'200GB' is no whole number; write digits alone, as in 8"),
    "root disk tiny": ("max_run: 48h", "root_disk_gb: 8", "cloud.pools[0].root_disk_gb", "8 GiB hold no system with driver and CUDA: write 30 or more", "warning"),
    "root disk huge": ("max_run: 48h", "root_disk_gb: 999999", "cloud.pools[0].root_disk_gb", "999999 is too large: it must be at most 65536"),
    "a disk faster than gp3": ("max_run: 48h", "root_disk_mb_s: 5000", "cloud.pools[0].root_disk_mb_s", "5000 is too large: it must be at most 750"),
    "hall link gone": ("        hall_link: {kind: direct-connect, hall: hall-a, gateway_id: 0a1b2c3d-4e5f-6789-abcd-ef0123456789}\n", "", "cloud.network.hall_link", "is absent, so cloud nodes don't reach head in hall-a and none joins", "warning"),
    "hall link other hall": ("hall: hall-a, gateway", "hall: hall-b, gateway", "cloud.network.hall_link.hall", "'hall-b' is not a declared hall"),
    "hall link kind": ("kind: direct-connect", "kind: vpn", "cloud.network.hall_link.peer_address", "is needed for a vpn link"),
    "a private address of the VPN device": ("kind: direct-connect, hall: hall-a, gateway_id: 0a1b2c3d-4e5f-6789-abcd-ef0123456789", "kind: vpn, hall: hall-a, peer_address: 10.0.0.1, peer_asn: 65000", "cloud.network.hall_link.peer_address", "10.0.0.1 is a private address, which AWS's VPN can't reach: write the", "warning"),
    "an ASN with its letters": ("kind: direct-connect, hall: hall-a, gateway_id: 0a1b2c3d-4e5f-6789-abcd-ef0123456789", "kind: vpn, hall: hall-a, peer_address: 203.0.113.5, peer_asn: AS65000", "cloud.network.hall_link.peer_asn", "'AS65000' is no whole number; write digits alone, as in 8"),
    "a build type without its size": ("build_type: m7i.2xlarge", "build_type: m7i", "cloud.images.build_type", "'m7i' isn't of the form that is needed here; write for example"),
    "an Arm build type for x86": ("build_type: m7i.2xlarge", "build_type: m7g.2xlarge", "cloud.images.build_type", "m7g.2xlarge is of Arm, and pool p5 isn't: its image would boot on"),
    "count 0": ("count: 2", "count: 0", "cloud.groups[0].count", "0 is too small: it must be greater than 0"),
    "group count text": ("count: 2", "count: two", "cloud.groups[0].count", "'two' is no whole number; write digits alone, as in 8"),
    "group zone other": ("count: 2, zone: us-east-1a", "count: 2, zone: us-east-1c", "cloud.groups[0].zone", "'us-east-1c' is not in cloud.network.zones (us-east-1a, us-east-1b)"),
    "a driver of two digits": ('driver: "580"', "driver: 58.95.05", "software.driver", "'58.95.05' isn't of the form that is needed here; write for example"),
    "driver branch old": ('driver: "580"', "driver: 470.57.02", "software", "hall-a/dgx[01-04]: H100 SXM5 80GB (it needs branch 525) with driver"),
    "a driver that YAML takes for a number": ('driver: "580"', "driver: 580.95", "software.driver", '580.95 is no text to YAML; quote it: driver: "580.95"'),
    "os windows": ("os: ubuntu2404", "os: windows", "software.os", "'windows' isn't known here; allowed: debian12, debian13, ubuntu2204,"),
    "os LTS": ("os: ubuntu2404", "os: Ubuntu 24.04 LTS", "software.os", "'Ubuntu 24.04 LTS' isn't known here; did you mean 'ubuntu2404'?"),
    "a system's number": ("os: ubuntu2404", "os: 24.04", "software.os", "24.04 isn't known here; did you mean 'ubuntu2404'? allowed: debian12,"),
    "a version with a v": ("container_toolkit: 1.18.0", "container_toolkit: v1.18.0", "software.container_toolkit", "'v1.18.0' isn't of the form that is needed here; write for example"),
    "slurm full": ('slurm: "24.11"', 'slurm: "24.11.5"', "software.slurm", "'24.11.5' isn't of the form that is needed here; write for example"),
    "shares in percent": ("    burst:", "    shares: [{name: a, share: 150%}]\n    burst:", "shares[0].team", "is needed here and absent"),
    "a private key for ssh": ("    halls:\n", "    ssh: {user: root, key_file: ~/.ssh/id_rsa}\n    halls:\n", "ssh.key_file", "there is no such key; allowed here: user, sudo_password, cloud_user,"),
    "sudo's password in clear text": ("    halls:\n", "    ssh: {user: ubuntu, sudo_password: hunter2}\n    halls:\n", "ssh.sudo_password", "the given value is not a secret reference: write env:NAME, file:PATH"),
    "moment no zone": (P5, P5 + ", capacity_ends: 2026-12-01T11:30:00", "cloud.pools[0].capacity_ends", "has no time zone; write for example 2026-12-01T11:30:00Z"),
    "moment past": (P5, P5 + ", capacity_ends: 2025-12-01T11:30:00Z", "cloud.pools[0].capacity_ends", "the pool's capacity ended at 2025-12-01 11:30:00+00:00; nothing could"),
    "moment CET": (P5, P5 + ", capacity_ends: 2026-12-01 11:30 CET", "cloud.pools[0].capacity_ends", "'2026-12-01 11:30 CET' is no point in time; write for example"),
    "a date as people write it": (P5, P5 + ", capacity_ends: 01.12.2026", "cloud.pools[0].capacity_ends", "'01.12.2026' is no point in time; write for example"),
    "licences without brackets": (P5, P5 + ", licences: matlab", "cloud.pools[0].licences", "'matlab' is no list; write [VALUE, VALUE], or one a line behind a `-`"),
    "a label with a blank": (P5, P5 + ", labels: {'my label': x}", "cloud.pools[0].labels.my label", "'my label' is no key of a label; write name or prefix/name, as in"),
    "checkpoint 0": (P5, P5 + ", checkpoint: 0", "cloud.pools[0].checkpoint", "0 is not a duration; write a number above zero with a unit, as in"),
    "checkpoint > max_run": (P5, P5 + ", checkpoint: 3d", "cloud.pools[0].checkpoint", "3d is no less than max_run, 2d, so no job saves anything before it", "warning"),
    "data unknown": (P5, P5 + ", data: [imagenet]", "cloud.pools[0].data[0]", "'imagenet' is not in cloud.data (nothing is declared there); somebody", "warning"),
    "NFS without its export": ("    burst:", "    filesystem: {kind: nfs, source: 10.0.0.5}\n    burst:", "filesystem", "has source '10.0.0.5', which nfs doesn't mount; write for example"),
    "NFS with its version": ("    burst:", "    filesystem: {kind: nfs4, source: '10.0.0.5:/x'}\n    burst:", "filesystem.kind", "'nfs4' isn't known here; did you mean 'nfs'? allowed: nfs, lustre,"),
    "mount options with a blank": ("    burst:", "    filesystem: {kind: nfs, source: '10.0.0.5:/x', options: 'rw, noatime'}\n    burst:", "filesystem.options", "'rw, noatime' isn't of the form that is needed here; write for"),
    "a file in a home": (MUNGE, "munge_key: 'file:~/munge.key'", "scheduler.munge_key", "must be a reference to aws-secretsmanager: where there are burst pools:"),
    "an ARN for a reference": (MUNGE, "munge_key: 'arn:aws:secretsmanager:us-east-1:123456789012:secret:x'", "scheduler.munge_key", "the given value is not a secret reference: write env:NAME, file:PATH"),
    "an address without brackets": ("[platform@example.org, finance@example.org]", "platform@example.org", "budget.notify", "'platform@example.org' is no list; write [VALUE, VALUE], or one a"),
    "metrics yes text": ("    burst:", "    metrics: 'yes please'\n    burst:", "metrics", "'yes please' is neither true nor false"),
    "a way of names that is not known": ("    names: hosts", "    names: ldap", "names", "'ldap' isn't known here; allowed: hosts, dns"),
    "data science": ("    burst:", "    data_science: [pytroch]\n    burst:", "data_science[0]", "'pytroch' isn't known here; did you mean 'pytorch'? allowed: pytorch,"),
    "infiniband missing": ("            infiniband_links: 8\n", "", "halls[0].nodes[1].infiniband_links", "is needed for GPU nodes; write 0 if they have no InfiniBand"),
    "platform missing": ("            platform: dgx-h100\n", "", "halls[0].nodes[1].height", "is needed: the catalogue doesn't know this platform's rack units"),
    "nodes of a scheduler that is not there": ("            platform: dgx-h100\n", "            platform: dgx-h100\n            scheduler: kubernetes\n", "halls[0].nodes[1].scheduler", "is kubernetes, and what is declared here can only be of slurm"),
    "settling longer than waiting": (BURST, BURST + "\n      settle: 2d", "burst.settle", "2d passes before any job is rented for, and 20m may be waited: lower", "warning"),
    "a user of the system": ("    burst:", "    users: {people: [{name: Anna, uid: 500, keys: [AAAA]}]}\n    burst:", "users.people[0].name", "'Anna' is no name that useradd and Slurm take: a lower case letter or"),
    "mail typo tld": ("platform@example.org", "platform@example", "budget.notify[0]", "'platform@example' is no mail address; write for example"),
    "very long name": ("name: prod\n", "name: pppppppppppppppppppppppppppppppppppppppp\n", "name", "'pppppppppppppppppppppppppppppppppppppppp' isn't of the form that is"),
    "name digit": ("name: prod\n", "name: 1prod\n", "name", "'1prod' isn't of the form that is needed here; write a small letter"),
    "name number": ("name: prod\n", "name: 2026\n", "name", '2026 is no text to YAML; quote it: name: "2026"'),
    "Norway's no": ("name: prod\n", "name: no\n", "name", 'False is no text to YAML; quote it: name: "no"'),
    "name underscore": ("name: prod\n", "name: prod_eu\n", "name", "'prod_eu' isn't of the form that is needed here; write a small letter"),
    "a comment that takes the brace": ("max_run: 48h}", "max_run: 48h #}", "", "line 48: the `{` of line 47 isn't closed, or a comma is missing"),
    "indent item": ("        - {name: p4d", "       - {name: p4d", "", "line 48: is indented otherwise than the lines above that it belongs to"),
    "missing comma": ("max_nodes: 4, zones", "max_nodes: 4 zones", "", "line 48: the `{` of line 48 isn't closed, or a comma is missing"),
    "missing space colon": ("max_nodes: 4,", "max_nodes:4,", "cloud.pools[1].max_nodes", "is needed here and absent"),
    "equals": ("max_nodes: 4,", "max_nodes=4,", "cloud.pools[1].max_nodes", "is needed here and absent"),
    "fullwidth colon": ("max_nodes: 4,", "max_nodes： 4,", "cloud.pools[1]", "has a full-width colon (U+FF1A), its character 10, as pasted from a"),
    "control char": ("name: prod\n", "name: pr\x07od\n", "", "line 6: has a control character (U+0007): delete it"),
}  # fmt: skip


def validated(file, monkeypatch, capsys):
    """The exit code of `ironburst validate` on the day NOW, and its findings with their lines."""
    monkeypatch.setattr(validate, "datetime", type("Day", (), {"now": staticmethod(lambda zone: NOW)}))
    code = cli.main(["validate", str(file), "--json", "--no-secrets"])
    return code, json.loads(capsys.readouterr().out)["findings"]


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
def test_no_mistake_is_accepted_in_silence(name, tmp_path, monkeypatch, capsys):
    old, new, path, words, *rest = MISTAKES[name]
    assert old in GOOD, "the good file has changed: the mistake can't be made in it any more"
    code, said = validated(mistaken(tmp_path, GOOD.replace(old, new, 1)), monkeypatch, capsys)
    (severity,) = rest or ("error",)
    found = [
        each for each in said if words in each["message"] and path in each["path"] and each["severity"] == severity
    ]
    assert found, f"accepted, or said otherwise: {said}"
    assert found[0]["line"] or re.match(r"is not YAML: line \d", found[0]["message"]), "where in the file?"
    assert code == (2 if any(each["severity"] == "error" for each in said) else 0)
    assert "hunter2" not in json.dumps(said), "a secret is never repeated"
    for each in said:
        assert not re.search(
            r"pydantic|string_|input should|valid string|\n|value error", each["message"], re.IGNORECASE
        ), each
        assert len(each["message"]) < 400, each


@pytest.mark.parametrize(
    "change", [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")], ids=["BOM", "CRLF"]
)
def test_what_windows_writes_means_the_same(tmp_path, change):
    file = mistaken(tmp_path, "")
    file.write_bytes(change(GOOD).encode())
    assert findings(file) == [] and load.load(file) == load.load(PROD)


def test_anchors_and_merge_keys_mean_what_they_stand_for(tmp_path):
    text = GOOD.replace("      pools:\n        - {name: p5,", "      pools:\n        - &one {name: p5,")
    text = text.replace(
        "- {name: p4d, instance_type: p4d.24xlarge,", "- {<<: *one, name: p4d, instance_type: p4d.24xlarge,"
    )
    pools = load.load(mistaken(tmp_path, text)).cloud.pools
    assert [(pool.name, pool.max_nodes) for pool in pools] == [("p5", 8), ("p4d", 4)]


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
FILES = {
    "it holds itself": ("config: &a {b: *a}", "holds itself"),
    "brackets without end": ("config: " + "[" * 3000, "without end"),
    "so many that libyaml's composer ends the process": ("config: " + "[" * 1_000_000, "without end"),
    "anchors of anchors": (BOMB, "expands to more than"),
    "another file, larger": ("x" * 5_000_000, "is it another file?"),
    "nothing": ("", "has no key ironburst:cluster"),
    "a list": ("- config\n", "has no key ironburst:cluster"),
    "the cluster without config": (GOOD.replace("config:\n", "").replace("\n  ", "\n"), "has no key ironburst:cluster"),
    "another project's": (GOOD.replace("ironburst:cluster", "burst:cluster"), "burst:cluster is of another project"),
    "two in one": (GOOD + "---\n" + GOOD, "begins a second document"),
    "not UTF-8": (GOOD.replace("Production", "Caf\u00e9").encode("latin-1"), "is not UTF-8 text"),
    "not text": (b"\x1f\x8b\x08" + bytes(range(256)), "is not UTF-8 text"),
}
"""what was done: the whole file, and words of the finding"""


@pytest.mark.parametrize("libyaml", [yaml.__with_libyaml__, False])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_none_is_told(name, libyaml, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(yaml, "__with_libyaml__", libyaml)  # PyYAML may be built without
    content, words = FILES[name]
    file = mistaken(tmp_path, "")
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, said = validated(file, monkeypatch, capsys)
    assert code == 2 and len(said) == 1 and words in said[0]["message"], said


@pytest.mark.parametrize(("where", "words"), [("nowhere.yaml", "No such file"), (".", "Is a directory")])
def test_a_file_that_is_not_there_is_told(where, words, tmp_path, monkeypatch, capsys):
    code, said = validated(tmp_path / where, monkeypatch, capsys)
    assert code == 2 and words in said[0]["message"]


def test_a_copy_that_was_not_renamed_is_told(tmp_path):
    file = mistaken(tmp_path, GOOD)
    (tmp_path / "Pulumi.staging.yaml").write_text(GOOD)
    assert [(each.path[-5:], each.severity) for each in findings(file)] == [(".name", "warning")]
    assert "in Pulumi.staging.yaml, too" in findings(file)[0].message


def test_capitals_of_a_host_are_told(declared):
    declared["halls"][0]["nodes"][1]["names"] = "DGX[01-02]"
    (said,) = [each for each in check(load.from_value(declared), NOW) if each.rule == "capitals"]
    assert said.severity == "warning" and "DGX01 has capitals" in said.message


def test_a_node_of_another_hall_is_told(tmp_path):
    hall = GOOD[GOOD.index("      - name: hall-a\n") : GOOD.index("    cloud:\n")]
    other = hall.replace("hall-a", "hall-b").replace("10.30.", "10.40.").replace("names: head\n", "names: login\n")
    file = mistaken(tmp_path, GOOD.replace("    cloud:\n", other.replace("role: head", "role: login") + "    cloud:\n"))
    said = [each for each in findings(file) if each.rule == "duplicate"]
    assert len(said) == 8 and all("node name 'dgx" in each.message for each in said)


def test_less_gpu_memory_may_be_chosen(tmp_path):
    text = GOOD.replace("platform: dgx-h100\n            rack: r02", "platform: dgx-a100-640gb\n            rack: r02")
    file = mistaken(tmp_path, text.replace("{name: p4d,", "{name: p4d, less_gpu_memory: true,"))
    assert [each for each in findings(file) if each.rule == "gpu-memory"] == []


def test_a_region_without_prices_is_told_what_to_write(tmp_path):
    file = mistaken(tmp_path, GOOD.replace("us-east-1", "eu-west-1").replace("price:\n", "price:\n", 1))
    (said,) = [each for each in findings(file) if each.rule == "no-price"]
    assert said.path.endswith("cloud.price") and said.message == (
        "the catalogue has no price of p4d.24xlarge in eu-west-1; write USD per hour of one instance under cloud.price: "
        "`p4d.24xlarge: {spot: USD, on_demand: USD}` (spot of p4d.24xlarge there: 34% below on demand on 2025-06-28, by "
        "the spot advisor; p4d.24xlarge in us-east-1: spot 7.246, on-demand 21.9576)"
    )


def test_the_snippet_of_prices_is_pasted_as_it_is(tmp_path):
    text = GOOD.replace("us-east-1", "eu-west-1").replace("      price:\n", "").replace(PRICE, "")
    (said,) = [each for each in findings(mistaken(tmp_path, text)) if each.rule == "no-price"]
    snippet = re.search("`(price: .*)`", said.message)[1]
    assert set(yaml.safe_load(snippet)["price"]) == {"p5.48xlarge", "p4d.24xlarge"}
    file = mistaken(tmp_path, text.replace("    budget:", f"      {snippet}\n    budget:"))
    assert {each.message for each in findings(file)} == {
        "'USD' is no number; write digits alone, as in 1500 (no unit, sign of money or comma)"
    }
    file = mistaken(tmp_path, text.replace("    budget:", f"      {snippet.replace('USD', '20')}\n    budget:"))
    assert [each for each in findings(file) if each.rule == "no-price" or "price" in each.path] == []


def test_there_are_many():
    assert len(MISTAKES) >= 350
