"""Google Compute Engine. No row of ironburst.wiring.clouds leads here yet (docs/adr/0121)."""

from importlib.util import find_spec

if find_spec("googleapiclient") is None:
    raise ImportError("Google Cloud needs its client: pip install 'ironburst[google]'")
