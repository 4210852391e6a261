"""Yesterday's work, played again: traces of jobs, what a policy would have done with them, and what none can beat.

- traces and formats: a trace, and how files become one
- simulate: a trace through the policy; jobs and home are what it plays with, view is what the policy sees of the rented
  side, outcome what comes of it
- at_once: the rented side in GPU-hours; rented: in money, with leases, idle_logs, cool_downs and provider
- results and pictures: what a play comes to; simulation_report, size_report (with growth), fit_report and
  ticks_report: that for people and programs; declared: what a site's trace is played on
- sizing: how much to own, by many plays
- bound and bound_search: under which no policy stays
- ticks: the controller's own record, decided again
"""
