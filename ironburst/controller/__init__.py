"""The controller: observe, decide, re-check, apply, record. The only one that launches or ends a rented node.

- tick: one turn, in order; loop: tick after tick; site: what a tick works with; shadow: a controller that only looks
- lock, ownership: one controller at a time, and one for a site; heartbeat: what rented nodes hear of it
- policy_view: what the policy decides from; apply: its decision, re-checked and carried out
- lease_table: what a lease's facts lead to; leases: its steps; launch_request, launching: those up to its instance;
  lease_states: states and moves; going: the end; reaper: what has no lease; rebuild: a lost or restored ledger
- notices: what the provider reports of instances; sightings: what its listings prove; brake: ended if a tick fails
- broken_pool, drained, lasting, unstarted, foreign, hall_events: what goes wrong for long, is reported, and ends
- orders, order_book, order_spool: what people ordered; own_exclusions, comments: what users wrote, and what they read
- deadline_moves: how much of a job's work is saved, and what was seen of spot
- ledger: the SQLite file (schema.sql, schema), or two heads' database (postgresql), its rows in records; copies of it.
  Kept in it: cool_downs, idle_store, runtime_store, spot_prices, karpenter_store, ledger_jobs, ledger_decisions,
  waits_watch; written: of a large queue what changed; retention: what it forgets; clock_repair: a clock that was put
  back
- money: what is spent and set aside; spending: the ledger's; ceilings: what a budget can't pay is ended; renewing:
  what has no end is paid for by the hour
- karpenter, karpenter_room: limits of Karpenter's pools; shares: guarantees follow the nodes in service
- status_report, with burn and karpenter_status, and job_story: what the ledger has, for people and programs;
  declared_site: what a trace is played on
- metrics: the same for Prometheus, with teams: what accounts use
- job_runs: which job had which GPUs and when; job_figures: what is asked of Prometheus then; job_report: for people;
  energy: what jobs and halls take, and what that emits; idle_gpus, idle_evidence: GPUs of running jobs that do nothing
- log_query: whose logs somebody asks for
- recorder, logbook: each tick on disk (as changes) and in the ledger; private: modes of these files
"""
