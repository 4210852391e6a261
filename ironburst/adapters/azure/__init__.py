"""Microsoft Azure. No row of ironburst.wiring.clouds leads here yet (docs/adr/0129)."""

from importlib.util import find_spec

try:
    _THERE = find_spec("azure.mgmt.compute")
except ModuleNotFoundError:  # not even azure
    _THERE = None
if _THERE is None:
    raise ImportError("Azure needs its clients: pip install 'ironburst[azure]'")
