-- The ledger, for SQLite; controller/postgresql.py has PostgreSQL's types for these. Times are seconds since 1970 (UTC), money USD. One writer (the lock), any number of readers (WAL).
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS launches (
  id TEXT PRIMARY KEY, pool TEXT NOT NULL, instance_type TEXT NOT NULL, market TEXT NOT NULL, zones TEXT NOT NULL, nodes TEXT NOT NULL,
  usd_per_hour REAL NOT NULL, image_id TEXT NOT NULL, boot_s REAL NOT NULL, reason TEXT NOT NULL, made_s REAL NOT NULL, serial INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS leases (
  id TEXT PRIMARY KEY, launch TEXT NOT NULL REFERENCES launches(id), node TEXT NOT NULL, pool TEXT NOT NULL, instance_type TEXT NOT NULL,
  market TEXT NOT NULL, zone TEXT NOT NULL DEFAULT '', usd_per_hour REAL NOT NULL, state TEXT NOT NULL, instance_id TEXT,
  committed_until_s REAL NOT NULL, idle_since_s REAL, worked INTEGER NOT NULL DEFAULT 0,
  made_s REAL NOT NULL, from_s REAL, joined_s REAL, to_s REAL, changed_s REAL NOT NULL, end_reason TEXT NOT NULL DEFAULT '', seen_s REAL,
  address TEXT NOT NULL DEFAULT '');
-- one open lease a node, whatever the program thinks
CREATE UNIQUE INDEX IF NOT EXISTS one_open_lease_a_node ON leases(node) WHERE state NOT IN ('ended', 'terminated');
-- what a lease costs an hour, and whose ceiling pays for it, from a moment on (0: from its beginning); the newest row of a moment counts
CREATE TABLE IF NOT EXISTS rates (
  lease TEXT NOT NULL REFERENCES leases(id), from_s REAL NOT NULL, account TEXT NOT NULL, usd_per_hour REAL NOT NULL, PRIMARY KEY (lease, from_s));
CREATE TABLE IF NOT EXISTS assignments (job INTEGER NOT NULL, lease TEXT NOT NULL REFERENCES leases(id), at_s REAL NOT NULL, PRIMARY KEY (job, lease));
CREATE INDEX IF NOT EXISTS assignments_of_lease ON assignments(lease);
CREATE TABLE IF NOT EXISTS intents (
  token TEXT PRIMARY KEY, launch TEXT NOT NULL REFERENCES launches(id), attempt INTEGER NOT NULL, zone TEXT NOT NULL, request TEXT NOT NULL,
  state TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0, retry_s REAL NOT NULL DEFAULT 0, code TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT '', made_s REAL NOT NULL, changed_s REAL NOT NULL, UNIQUE (launch, attempt));
CREATE TABLE IF NOT EXISTS cool_downs (
  pool TEXT NOT NULL, zone TEXT NOT NULL, market TEXT NOT NULL, nodes INTEGER NOT NULL, until_s REAL, reason TEXT NOT NULL,
  strikes INTEGER NOT NULL, at_s REAL NOT NULL, serial INTEGER NOT NULL, instance_type TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (pool, zone, market, nodes, instance_type));
CREATE TABLE IF NOT EXISTS decisions (
  id INTEGER PRIMARY KEY, at_s REAL NOT NULL, last_s REAL NOT NULL, job INTEGER NOT NULL, kind TEXT NOT NULL, code TEXT NOT NULL,
  text TEXT NOT NULL, look_again_s REAL, figures TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS decisions_of_job ON decisions(job, id);
-- of a large queue: how the last decisions of its jobs (their ids % 32 = part) read at a moment, where that is after last_s of
-- their row in decisions; zlib'd JSON: {job: [kind, code, text, look_again_s, figures]}
CREATE TABLE IF NOT EXISTS wordings (part INTEGER PRIMARY KEY, at_s REAL NOT NULL, said BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS jobs (
  job INTEGER PRIMARY KEY, name TEXT NOT NULL, "user" TEXT NOT NULL, submit_s REAL NOT NULL, nodes INTEGER NOT NULL, gpus INTEGER NOT NULL,
  time_limit_s REAL, state TEXT NOT NULL, start_s REAL, ran_on TEXT NOT NULL DEFAULT '', last_s REAL NOT NULL,
  called TEXT NOT NULL DEFAULT '', spot_losses INTEGER NOT NULL DEFAULT 0, lost_start_s REAL);
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs(state);
CREATE TABLE IF NOT EXISTS events (
  id INTEGER PRIMARY KEY, at_s REAL NOT NULL, kind TEXT NOT NULL, launch TEXT NOT NULL DEFAULT '', lease TEXT NOT NULL DEFAULT '',
  job INTEGER, text TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS events_by_time ON events(at_s);
CREATE INDEX IF NOT EXISTS events_of_job ON events(job) WHERE job IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_of_launch ON events(launch);
-- runs of jobs on GPUs, and what they made of them: gzip'd JSON of job_figures. ask_s: when Prometheus is asked next; NULL: no more
CREATE TABLE IF NOT EXISTS job_runs (
  job INTEGER NOT NULL, start_s REAL NOT NULL, number INTEGER NOT NULL, called TEXT NOT NULL, "user" TEXT NOT NULL, account TEXT NOT NULL,
  nodes TEXT NOT NULL, gpus INTEGER NOT NULL, slice INTEGER NOT NULL, time_limit_s REAL, end_s REAL, usd REAL, ask_s REAL,
  asked INTEGER NOT NULL DEFAULT 0, figures BLOB, PRIMARY KEY (job, start_s));
CREATE INDEX IF NOT EXISTS job_runs_to_ask ON job_runs(ask_s) WHERE ask_s IS NOT NULL;
CREATE INDEX IF NOT EXISTS job_runs_by_end ON job_runs(end_s);
-- GPU-seconds of jobs in each quarter of an hour, as ticks saw them for seen_s of its seconds
CREATE TABLE IF NOT EXISTS gpu_use (
  quarter INTEGER PRIMARY KEY, last_s REAL NOT NULL, seen_s REAL NOT NULL, home REAL NOT NULL, rented REAL NOT NULL, waiting REAL NOT NULL);
