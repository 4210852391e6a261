"""The largest cloud site that the figures of issue 47 ask for: 12 pools of three types each in four zones, every pool
with data in S3, the names as long as they may be. The partition and region with the longest ARNs are GovCloud's.
"""

from ironburst import catalog

THREE = (
    ("g4dn.xlarge", "g4dn.2xlarge", "g4dn.4xlarge"),
    ("g5.xlarge", "g5.2xlarge", "g5.4xlarge"),
    ("g6.xlarge", "g6.2xlarge", "g6.4xlarge"),
    ("g6e.xlarge", "g6e.2xlarge", "g6e.4xlarge"),
)


def enlarge(value, pools=12, region="us-gov-west-1"):
    """Make it of the lab's value (which it returns); names of 28 characters are the longest that a role of a pool's
    own can have beside the longest of a cluster.
    """
    value["name"] = "c" * 22
    cloud, zones = value["cloud"], [f"{region}{letter}" for letter in "abcd"]
    cloud["region"], cloud["network"]["zones"], cloud["groups"] = region, zones, []
    cloud["data"] = {f"set{n}": {"s3": f"training-data-{n}/imagenet"} for n in range(pools)}
    cloud["pools"] = [
        {
            "name": f"pool-{n:03}-{'p' * 19}",
            "instance_types": list(THREE[n % len(THREE)]),
            "max_nodes": 4,
            "zones": list(zones),
            "markets": ["spot", "on-demand"],
            "placement_group": True,
            "data": [f"set{n}"],
        }
        for n in range(pools)
    ]
    cloud["price"] = {name: dict.fromkeys(("spot", "on_demand"), 1.0) for types in THREE for name in types}
    assert all(catalog.instance_type(name) for types in THREE for name in types)
    return value
