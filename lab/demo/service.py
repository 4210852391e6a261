"""The controller as the service that the role slurm_head sets up on the head. Its program is installed from this
checkout, with Debian's packages of what it needs (a hall installs a wheel: docs/how-to/controller.md).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from ironburst import document
from lab.demo.inside import Inside
from lab.system import CHECKOUT

_LIBRARIES = (
    "argcomplete",
    "boto3",
    "botocore",
    "jinja2",
    "markupsafe",
    "numpy",
    "pydantic",
    "requests",
    "rich",
    "starlette",
    "sushy",
    "urllib3",
    "uvicorn",
    "yaml",
)
NEEDS = tuple(f"python3-{name}" for name in _LIBRARIES)
BINARY = "/opt/ironburst/.venv/bin/ironburst"
PROGRAM = '#!/bin/sh\nPYTHONPATH={path} exec /usr/bin/python3 -m ironburst.cli "$@"\n'
# In the shared folder, so that the demo reads it beside the controller
LEDGER = "/shared/ironburst/ledger.sqlite"
INSTALL = f"""set -e
apt-get install -y -qq --no-install-recommends {" ".join(NEEDS)} > /dev/null
cp --recursive --preserve=mode --no-target-directory /shared/install /
{{credentials}}install -d -o ironburst -g ironburst -m 0750 {Path(LEDGER).parent}
systemctl daemon-reload
"""


def install(inside: Inside) -> None:
    """Program, document and settings; the head was converged before. LabError."""
    settings = inside.cloud.settings(inside) | {"IRONBURST_LEDGER": LEDGER}
    published = published_at(inside)
    where = f"export IRONBURST_DOCUMENT={published} IRONBURST_LEDGER={LEDGER}"
    folder = inside.site.dir / "shared" / "install"
    libraries = inside.cloud.libraries(folder, inside.box.root)
    files = {
        BINARY[1:]: (PROGRAM.format(path=":".join(filter(None, ["/opt/ironburst", libraries]))), 0o755),
        # what a person at the head's prompt calls
        "usr/local/bin/ironburst": (f'#!/bin/sh\n# written by the lab\n{where}\nexec {BINARY} "$@"\n', 0o755),
        published[1:]: (inside.document.read_text(), 0o644),
        "etc/ironburst/controller.env": ("".join(f"{name}={value}\n" for name, value in settings.items()), 0o600),
        **inside.cloud.on_head(inside),
        "etc/systemd/system/ironburst.service.d/lab.conf": (
            f"# written by the lab\n[Service]\nReadWritePaths={Path(LEDGER).parent}\n",
            0o644,
        ),
    }
    shutil.copytree(CHECKOUT / "ironburst", folder / "opt/ironburst/ironburst", ignore=shutil.ignore_patterns("__py*"))
    for name, (text, mode) in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
    try:
        folders = sorted({f"/{Path(name).parent}" for name in inside.cloud.on_head(inside)})
        own = "".join(f"chown --recursive ironburst: {folder}\nchmod 0700 {folder}\n" for folder in folders)
        inside.run([*inside.head_prefix(), INSTALL.format(credentials=own)])
    finally:
        shutil.rmtree(folder)


def published_at(inside: Inside) -> str:
    """Where the head has the document, for its controller."""
    return f"/srv/ironburst/{document.read(inside.document).cluster}.json"


def start(inside: Inside, log: str) -> int:
    """Start it, and follow its journal in a log of the lab; the follower's pid in the box."""
    inside.run([*inside.head_prefix(), "systemctl enable --quiet --now ironburst"])
    return inside.spawn([*inside.head_prefix(), "journalctl --follow --lines=all --output=cat --unit=ironburst"], log)
