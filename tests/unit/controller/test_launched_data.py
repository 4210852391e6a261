"""What a launch tells its nodes of their pool's data sets."""

import json

from ironburst import document
from ironburst.controller.launch_request import user_data
from tests.unit.document.test_document import built

DATA = {"imagenet": {"s3": "training/imagenet"}, "genomes": {"s3": "training/genomes"}}


def said(*names):
    def change(value):
        value["cloud"]["data"] = DATA
        value["cloud"]["pools"][0]["data"] = list(names)

    declared = document.parse(built(change).model_dump(mode="json"))
    return json.loads(user_data(declared, declared.pool("p5"), declared.pool("p5").zones[0], ("p5-1",), 45.0))


def test_a_launch_names_the_declared_data_sets_of_its_pool_and_the_time_for_them():
    told = said("imagenet", "c4")
    assert told["data"] == {"imagenet": {"kind": "s3", "source": "training/imagenet", "path": "/data/imagenet"}}
    assert told["boot_s"] == 45.0


def test_a_pool_without_any_is_launched_as_before():
    """To the letter: a launch that is open while the controller is renewed is repeated with the same parameters."""
    assert set(said("c4")) == {
        *("ironburst", "cluster", "nodes", "conf_server", "munge_key", "region", "dead_man_s", "hard_limit_s"),
    }
