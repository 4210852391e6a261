"""The catalogue's tables as the gate has them."""

from ironburst.cli.health import data
from ironburst.health import tables

TABLES = tables.load({name: data(name) for name in tables.FILES})
