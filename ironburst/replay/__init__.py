"""Yesterday's work, played again: traces of jobs, what a policy would have done with them, and what none can beat."""
