"""Yesterday's work, played again: traces of jobs, what a policy would have done with them, and what none can beat.

Traces: traces, formats. A trace played through the policy: simulate (the loop), jobs, home, and the rented side: at_once
(GPU-hours), or rented (money) with leases, idle_logs, cool_downs and provider; view is what the policy sees of it,
outcome what comes of it, results and pictures show it. sizing plays many; bound and bound_search say what no policy can
beat. Apart from all that: ticks decides the controller's own record again.
"""
