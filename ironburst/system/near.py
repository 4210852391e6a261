"""What somebody may have meant by a name that is none."""

import difflib
import re
from collections.abc import Iterable, Sequence

MOST = 3
"""names that are suggested at most"""


def suggested(near: Sequence[str]) -> str:
    """`did you mean 'a', 'b' or 'c'?`; empty without any."""
    if not near:
        return ""
    *others, last = map(repr, near)
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"


def nearest(given: str, allowed: Iterable[str]) -> list[str]:
    """What may have been meant: the same but for case, blanks and punctuation, else what begins with it, else what has
    all its words (hgx-h100 in generic-hgx-h100-8-gpu), else what is written much like it. Best first, MOST at most.
    """
    names = {_plain(name): name for name in allowed}
    wanted = _plain(given)
    if wanted in names:
        return [names[wanted]]
    longer = [name for plain, name in names.items() if wanted and plain.startswith(wanted)]
    longer = longer or [name for name in names.values() if wanted and _words(given) <= _words(name)]
    if longer:
        return sorted(longer, key=lambda name: (len(name), name))[:MOST]
    close = difflib.get_close_matches(wanted, names, n=MOST, cutoff=0.6)
    best = [difflib.SequenceMatcher(None, wanted, plain).ratio() for plain in close]
    return [names[plain] for plain, ratio in zip(close, best, strict=True) if ratio > best[0] - 0.03]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z0-9]+", name.lower().strip()))
