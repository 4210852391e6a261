"""Log centres of the lab: VictoriaLogs, built once from its Go module (go.mod and go.sum fix versions and hashes), and
OpenSearch, of Maven's jars (pom.xml fixes the versions), which needs a JDK and mvn on PATH.
"""

import shutil
import sys
from pathlib import Path

from lab.go import Program, build
from lab.hosts.cache import made, path_of
from lab.system import LAB_ROOT, LabError, run

HERE = Path(__file__).parent
VICTORIA = Program("victoria-logs", "logs", "github.com/VictoriaMetrics/VictoriaLogs/app/victoria-logs")
MEMORY = "-Xmx256m"


def victoria(root: Path = LAB_ROOT) -> Path:
    """VictoriaLogs; built now (half a minute to two) if it isn't there. LabError if it can't be."""
    module = [(HERE / name).read_text() for name in ("go.mod", "go.sum")]

    def make(aside: Path) -> None:
        print("building VictoriaLogs from its Go module, once", file=sys.stderr, flush=True)
        build(VICTORIA, aside / VICTORIA.name, HERE)

    return made(Path(root).resolve(), path_of("logs", Path(root).resolve(), module, VICTORIA), make) / VICTORIA.name


def victoria_command(program: Path, address: str, folder: Path, days: int = 30) -> list[str]:
    """The command that runs it at `address` (host:port), with its data in `folder`, for so many days."""
    where = [f"-httpListenAddr={address}", f"-storageDataPath={folder}", f"-retentionPeriod={days}d"]
    return [str(program), *where, "-loggerLevel=WARN", "-memory.allowedBytes=128MB"]


def opensearch(root: Path = LAB_ROOT) -> Path:
    """The folder of OpenSearch's jars; fetched now (45 MB) if it isn't there. LabError if it can't be."""
    if lacking := [name for name in ("java", "javac", "mvn") if not shutil.which(name)]:
        raise LabError(f"OpenSearch needs a JDK and Maven: {', '.join(lacking)} is not on PATH")

    def make(aside: Path) -> None:
        print("fetching OpenSearch's jars, once", file=sys.stderr, flush=True)
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={aside / 'lib'}"]
        run(["mvn", "--quiet", "--batch-mode", "--file", str(HERE / "pom.xml"), *copy])
        run(["javac", "-cp", f"{aside / 'lib'}/*", "-d", str(aside), str(HERE / "Centre.java")])

    texts = [(HERE / name).read_text() for name in ("pom.xml", "Centre.java")]
    return made(Path(root).resolve(), path_of("opensearch", Path(root).resolve(), texts, ()), make)


def opensearch_command(jars: Path, address: str, folder: Path) -> list[str]:
    """The command that runs it at `address` (host:port), with its data in `folder`."""
    host, _, port = address.rpartition(":")
    return ["java", MEMORY, "-cp", f"{jars}:{jars / 'lib'}/*", "Centre", host, port, str(folder)]
