"""The controller: observe, decide, re-check, apply, record. The only one that launches or ends a rented node.

- tick: one turn, in its order; loop: tick after tick; site: what a tick works with; lock: one controller at a time
- policy_view: what the policy decides from; apply: its decision, re-checked and carried out
- launching: a lease up to its instance, by a launch_request; leases: from there on; going: the way out of all that end;
  reaper: what has no lease
- notices: what the provider says of instances; brake: what is ended when a tick fails
- ledger: the SQLite file (schema.sql), its rows in records; kept in it: cool_downs, idle_store, runtime_store
- money: what is spent and set aside; spending: that of the ledger; ceilings: what a budget can't pay is ended
- clock_repair: a clock that was put back; retention: what the ledger forgets
- status_report (with burn and karpenter_status) and job_story: what the ledger says, for people and programs;
  declared_site: what a trace is played on
- recorder: each tick on disk, as changes from the one before
"""
