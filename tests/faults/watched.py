"""What Prometheus would have of a site in memory: the controller's own metrics at each scrape, and what the head's
exporter says of Slurm; and which alerts its rules make of that.
"""

from __future__ import annotations

import itertools
import json
import re
import urllib.parse
import urllib.request

from ironburst.config.types import unit_seconds
from ironburst.controller.metrics import Metrics
from ironburst.monitoring import rules

SCRAPE_S = 60.0
HEAD = 'node="head",role="head",hall="h"'
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


class Watched:
    """Mixed into a Story: `samples` are {series: [(time, value)]}."""

    samples: dict[str, list[tuple[float, float]]]
    metrics: Metrics | None = None
    _scraped_s = 0.0

    def start(self):
        super().start()
        self.metrics = Metrics(self.ledger)
        self._outcome = None
        tick = self.controller.tick

        def kept(document):
            self._outcome = tick(document)
            return self._outcome

        self.controller.tick = kept

    def tick(self):
        self._outcome, missed = None, len(self.missed)
        super().tick()
        if not self.stopped and self.metrics:
            wrong = RuntimeError(self.missed[-1]) if len(self.missed) > missed else None
            if self._outcome or wrong:
                self.metrics.ended(self.document, self._outcome or wrong)
        if self.clock.at - self._scraped_s >= SCRAPE_S:
            self._scraped_s = self.clock.at
            self._scrape()

    def _skip(self):
        """Nothing: who watches would see a controller that is away."""

    def _scrape(self):
        up, slurm = not self.stopped, not self.slurm.out_of_reach
        self._put(f'up{{job="ironburst",{HEAD}}}', up)
        self._put(f'up{{job="node",{HEAD}}}', True)
        for daemon in ("slurmctld", "slurmdbd"):
            self._put(f'ironburst_slurm_up{{daemon="{daemon}",{HEAD}}}', slurm)
        self._put(f"ironburst_metrics_time_seconds{{{HEAD}}}", self.clock.at)
        for node, fake in self.slurm.nodes.items() if slurm else ():
            partition = "burst-p5" if node.startswith("p5") else "home"
            drained = "DRAIN" in fake.states
            self._add(f'ironburst_slurm_nodes_drained{{partition="{partition}",{HEAD}}}', drained)
            self._add(f'ironburst_slurm_nodes{{partition="{partition}",state="any",{HEAD}}}', True)
        for line in self.metrics.text.splitlines() if up else ():
            if found := SAMPLE.match(line):
                name, labels, value = found.groups()
                own = [label for label in HEAD.split(",") if not labels or label.partition("=")[0] + "=" not in labels]
                self._put(f"{name}{{{','.join([*([labels] if labels else []), *own])}}}", float(value))

    def _put(self, series, value):
        if not hasattr(self, "samples"):
            self.samples = {}
        self.samples.setdefault(series, []).append((self.clock.at, float(value)))

    def _add(self, series, value):
        """To what this scrape has of it."""
        before = getattr(self, "samples", {}).get(series, [])
        if before and before[-1][0] == self.clock.at:
            value += before.pop()[1]
        self._put(series, value)


def openmetrics(samples):
    """As promtool takes it: families one after another, each series in order of time."""
    lines = []
    for name, its in itertools.groupby(sorted(samples), key=lambda series: series.partition("{")[0]):
        lines.append(f"# TYPE {name.removesuffix('_total')} {'counter' if name.endswith('_total') else 'gauge'}")
        lines += [f"{series} {value!r} {at:.3f}" for series in its for at, value in samples[series]]
    return "\n".join([*lines, "# EOF", ""])


def fired(url, from_s, to_s):
    """{name: severity} of the rules that would have fired between the two, at one evaluation a scrape."""
    found = {}
    for name, rule in rules.every().items():
        if name != "Watchdog":
            asked = {"query": rule["expr"], "start": from_s, "end": to_s, "step": SCRAPE_S}
            with urllib.request.urlopen(
                f"{url}/api/v1/query_range?{urllib.parse.urlencode(asked)}", timeout=60
            ) as answer:
                series = json.load(answer)["data"]["result"]
            held_s = unit_seconds(str(rule.get("for", "0s"))) or 0
            if any(longest([float(at) for at, _ in each["values"]]) >= held_s for each in series):
                found[name] = rule["labels"]["severity"]
    return found


def longest(moments):
    """Seconds from the first to the last of those that follow each other."""
    longest, began = 0.0, moments[0]
    for before, at in itertools.pairwise(moments):
        began = began if at - before <= SCRAPE_S * 1.5 else at
        longest = max(longest, at - began)
    return longest
