"""Names as Google Cloud takes them, and our labels. Pure."""

import hashlib

from ironburst.nodes.naming import logical

MOST = 63
_ACCOUNT = 30  # characters of a service account's id


def resource(*parts: str, prefix: str = "ib") -> str:
    """A name of small letters, digits and -, cut with a hash of what was longer."""
    return _short(logical(prefix, *parts).lower().replace("_", "-").replace(".", "-"), MOST)


def account(*parts: str) -> str:
    """The id of a service account, and of a pool of identities."""
    return _short(resource(*parts), _ACCOUNT)


def role(*parts: str) -> str:
    """The id of a role of the project, which takes no hyphen."""
    return "_".join(("ironburst", *parts)).replace("-", "_").replace(".", "_")[:MOST]


def labels(cluster: str, name: str, asked: dict[str, str], **more: str) -> dict[str, str]:
    """Of a resource: the organization's, and ours. `more`: pool or group."""
    ours = {"ironburst-cluster": cluster, "ironburst-name": resource(cluster, name)}
    return asked | ours | {f"ironburst-{key}": value for key, value in more.items()}


def _short(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    return f"{name[: most - 9].rstrip('-')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
