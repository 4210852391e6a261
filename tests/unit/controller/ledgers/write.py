"""A small site's ledger as another commit's program writes it, by that commit's own fakes: leases that ended, that are
used, and one that comes. For a commit that changes schema.sql:

    git archive COMMIT ironburst tests playbooks | tar -x -C FOLDER && cd FOLDER
    python .../tests/unit/controller/ledgers/write.py FOLDER OUT
    gzip -9n < OUT/ledger.sqlite > YYYY-MM-DD-HHMM-COMMIT.sqlite.gz
"""

import importlib.util
import sys
from pathlib import Path


def main(checkout, out):
    sys.path[:0] = [str(checkout), str(checkout / "tests")]
    places = (checkout / "tests/fakes/world.py", checkout / "tests/unit/test_controller.py")
    spec = importlib.util.spec_from_file_location("world", next(path for path in places if path.exists()))
    module = importlib.util.module_from_spec(spec)
    sys.modules["world"] = module
    spec.loader.exec_module(module)
    out.mkdir(exist_ok=True)
    world = module.World(out)
    world.cloud.capacity["us-east-1a", "spot"] = 0
    for _ in range(2):
        world.slurm.submit(limit_s=7200, runs_s=7000)
    world.tick(2)
    job = world.slurm.submit(limit_s=600, runs_s=60)
    world.until(lambda: world.slurm.state(job) == "COMPLETED" and not world.ledger.leases(), 1800)
    world.slurm.submit(nodes=2, limit_s=3600, runs_s=3000)
    world.until(lambda: sum(lease.state == "ready" for lease in world.ledger.leases()) == 2, 1800)
    world.tick(3)
    world.slurm.submit(limit_s=3600, runs_s=600)
    world.until(lambda: any(lease.state == "launched" for lease in world.ledger.leases()), 1800)
    for sql in ("PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode=DELETE", "VACUUM"):
        world.ledger._db.execute(sql)
    world.ledger.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
