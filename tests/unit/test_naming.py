"""Names that several programs must agree on."""

from ironburst.nodes import naming


def test_names_that_slurm_the_cloud_and_the_lock_know():
    assert naming.burst_partition("p5") == "burst-p5"
    assert naming.numbered("p5", 3) == ["p5-1", "p5-2", "p5-3"] and naming.numbered("p5", 0) == []
    assert naming.image_parameter("lab", "p5") == "/ironburst/lab/p5/image"
    assert naming.logical("p5", "us-east-1a") == "p5-us-east-1a"
    locked = (naming.locked_nodes("hall-a", "dgx[01-02]"), naming.locked_group("fixed"), naming.locked_pool("p5"))
    assert locked == ("hall-a/dgx[01-02]", "group/fixed", "pool/p5")


def test_only_a_pools_resources_have_a_pools_tag():
    """The controller may end what has one."""
    assert naming.tags("lab", "vpc") == {"Name": "lab-vpc", "ironburst:cluster": "lab"}
    assert naming.tags("lab", "p5", pool="p5") == naming.tags("lab", "p5") | {"ironburst:pool": "p5"}
    assert naming.tags("lab", "fixed-1", group="fixed") == naming.tags("lab", "fixed-1") | {"ironburst:group": "fixed"}
