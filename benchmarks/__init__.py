"""What the product is worth, measured; each is run as `python -m benchmarks.NAME` and says more of itself with --help.

all: runs those below and writes results.md (`make bench`; report.py draws it up, report_pictures.py its pictures)
burst: GPU-hours that the policy rents, against published policies (peers.py) and the certified bound
dollars: what that costs, in list prices, against the same policies (dollar_peers.py)
fit: whether what `ironburst fit` recommends of one part of a trace is better than the defaults on the others
idle: what idle leases cost, against the best in hindsight
budget: whether a hard ceiling is ever passed, whatever goes wrong (mishaps.py)
spot: what jobs with a deadline cost with spot, against published policies and the best in hindsight (spot_peers.py)
decide: how long one decision takes
mix: what the instances for many pending pods cost, against a certified bound (mix_bound.py) and karpenter's scheduler
pending_pods: how long it is from a real API server's watches to a decision, with which memory and how many lists
schedulers: whether a queue of pods is decided on as a queue of Slurm's jobs is
shares: whether a team's guarantee is ever broken, by the rules themselves and by a real API server
share_table: the shares that the same lines of config reach in Slurm and in Kubernetes (root; a lab of its own)
watch: what a Prometheus takes that watches 60 nodes of 8 GPUs (Debian's packages)
hosts: how the inventory, the receipts and the way from stack file to document grow with the hosts

Not among them, for they give no ratio, or need more than this machine's Python:

converge: how long hosts take to converge (root; a lab of its own)
days: whether random days with accidents lose jobs or money, and how long nodes outlive a dead controller
cloud_days: the same of a site that rents in three clouds, one of which fails, loses answers or has nothing
full_days: whether days of 2,000 jobs, each with every fault of `make test-faults`, lose or double anything
tick: how much CPU, memory and disk a tick takes with a long queue
plays: how much CPU `simulate` takes for a million jobs
looks: how much CPU `status`, `explain` and the page take there, with a year of finished jobs
bmcs: how often a BMC is asked
gate: whether counts of these, and a few ratios, are within their limits (`make bench-gate`, in CI)
digest: whether the decisions are still the same, before and after a change
"""
