"""Yesterday's work, played again: traces of jobs, what a policy would have done with them, and what none can beat.

- traces, formats, foreign: a trace, and how files become one; seen: one of a controller's recorded ticks
- simulate: a trace through the policy; jobs and home are what it plays with, view (with sight) is what the policy sees
  of the rented side, known what it needn't look for, outcome what becomes of the jobs
- at_once: the rented side in GPU-hours; rented: in money, with leases, idle_logs, cool_downs, provider and spot_trace
- results and pictures: the figures of a play; simulation_report, size_report (with growth), fit_report and
  ticks_report: those for people and programs; declared: what a site's trace is played on;
  carbon: what its price changes
- sizing: how much to own, by many plays; fitting: how long jobs may wait, by a team's own history
- bound and bound_search: a lower bound that no policy can beat
- ticks: the controller's own record, decided again
"""
