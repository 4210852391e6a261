"""What the spot advisor has of EC2's instance types."""

from ironburst.catalog.instances import Interruptions, Price, Savings
from ironburst.catalog.tables import Row, Table, table

# the last one has no upper end there, so it is taken to be 30%
_BANDS = {"<5%": (0.0, 0.05), "5-10%": (0.05, 0.1), "10-15%": (0.1, 0.15), "15-20%": (0.15, 0.2), ">20%": (0.2, 0.3)}


def _advised(name: str, region: str) -> tuple[Row, Table] | None:
    advisor = table("aws_spot_advisor.csv")
    row = next((row for row in advisor.rows if (row["region"], row["instance_type"]) == (region, name)), None)
    return (row, advisor) if row else None


def interruptions(name: str, region: str) -> Interruptions | None:
    """How often spot instances of a type are taken back; None where it isn't known."""
    found = _advised(name, region)
    band = _BANDS.get(found[0]["interruption_30d"]) if found else None
    return Interruptions(*band, "spot advisor", found[1].as_of) if found and band else None


def savings(name: str, region: str) -> Savings | None:
    """What spot saves on on-demand in a region; None where it isn't known."""
    found = _advised(name, region)
    percent = found[0]["savings_pct_vs_od"] if found else ""
    return Savings(float(percent), found[1].as_of) if found and percent else None


def price(name: str, region: str) -> Price | None:
    """Of one region, an estimate."""
    found = _advised(name, region)
    usd = found[0]["est_spot_usd_h_us_east_1_only"] if found else ""
    return Price(float(usd), "estimate from the spot advisor", found[1].as_of) if found and usd else None
