import dataclasses
from datetime import date
from importlib import resources

import pytest

from ironburst import catalog
from ironburst.catalog.tables import table

DATA = resources.files("ironburst.catalog").joinpath("data")
# rows of each file: a lost one would be seen nowhere else. Whoever adds one counts it here
GPUS, PLATFORMS, NVIDIA_INSTANCE_TYPES, RULES = 42, 36, 65, 60


def test_every_data_file_is_named_with_its_source_in_the_readme():
    readme = DATA.joinpath("README.md").read_text()
    files = [file for file in DATA.iterdir() if not file.name.endswith(".md")]
    assert len(files) >= 14
    for file in files:
        first, second = file.read_text().splitlines()[:2]
        assert first.startswith("# as_of:") and second.startswith("# source: "), file.name
        assert f"| {file.name} |" in readme


def test_a_gpu():
    h100 = catalog.gpu("H100 SXM5 80GB")
    assert (h100.architecture, h100.memory_gb, h100.tdp_w, h100.open_kernel_module) == ("Hopper", 80, 700.0, "allowed")
    assert len(catalog.gpus()) == len(table("gpus.csv").rows) == GPUS  # no two have one name


def test_an_empty_cell_is_none_and_a_zero_is_zero():
    variants = catalog.gpu("H100 SXM5 94/96/64GB variants")
    assert variants.memory_gb is None and variants.open_first_driver is None
    assert catalog.gpu("T4").mig_max_instances == 0
    assert catalog.platform("generic-hgx-h100-8-gpu").max_power_w is None
    assert catalog.driver_branch(590).eol is None


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("generic HGX H100 8-GPU", "generic-hgx-h100-8-gpu"),
        ("DGX H100", "dgx-h100"),
        ("DGX-1 (V100)", "dgx-1-v100"),
        ("generic PCIe server 8-GPU (H100 NVL 94GB)", "generic-pcie-server-8-gpu-h100-nvl-94gb"),
    ],
)
def test_platform_slugs(name, slug):
    assert catalog.slug(name) == slug
    assert catalog.platform(slug).name == name


def test_a_platform_is_joined_to_its_gpu():
    dgx = catalog.platform("dgx-h100")
    expected = ("H100 SXM5 80GB", 8, 8, 10200, 8)
    assert (dgx.gpu_model, dgx.gpu_count, dgx.height_u, dgx.max_power_w, dgx.fabric_links) == expected
    assert catalog.platform("generic-hgx-h100-8-gpu").fabric_links is None
    assert len(catalog.platforms()) == len(table("platforms.csv").rows) == PLATFORMS  # no two names share a slug


@pytest.mark.parametrize(
    ("lookup", "given", "sentence"),
    [
        (catalog.gpu, "H100 SXM 80GB", "Unknown GPU model 'H100 SXM 80GB': did you mean 'H100 SXM5 80GB'?"),
        (
            catalog.platform,
            "hgx-h100",
            "Unknown platform 'hgx-h100': did you mean 'generic-hgx-h100-4-gpu' or 'generic-hgx-h100-8-gpu'?",
        ),
        (catalog.platform, "dgx-h10", "Unknown platform 'dgx-h10': did you mean 'dgx-h100'?"),
        (catalog.instance_type, "p5.48xlrage", "Unknown instance type 'p5.48xlrage': did you mean 'p5.48xlarge'?"),
        (catalog.instance_type, "P5.48XLARGE", "Unknown instance type 'P5.48XLARGE': did you mean 'p5.48xlarge'?"),
        (catalog.cuda, "12.66", "Unknown CUDA version '12.66': did you mean '12.6'?"),
        (catalog.rule, "DRV_005", "Unknown rule 'DRV_005': did you mean 'DRV-005'?"),
        (catalog.instance_type, "zzz", "Unknown instance type 'zzz': the catalogue has nothing like it."),
    ],
)
def test_an_unknown_name_says_what_may_be_meant(lookup, given, sentence):
    with pytest.raises(catalog.Unknown) as error:
        lookup(given)
    assert str(error.value) == sentence
    assert error.value.given == given


def test_an_unknown_driver_branch():
    with pytest.raises(catalog.Unknown, match="Unknown driver branch '585'"):
        catalog.driver_branch(585)


def test_every_nvidia_instance_type_is_joined_to_a_gpu_of_the_table():
    rows = table("aws_instance_types.csv").rows
    nvidia = [row["instance_type"] for row in rows if row["accel_vendor"] == "NVIDIA"]
    assert len(nvidia) == NVIDIA_INSTANCE_TYPES
    for name in nvidia:
        kind = catalog.instance_type(name)
        assert kind.gpu is not None and kind.gpu_count >= 1, name
        assert kind.vcpus and kind.memory_mib


@pytest.mark.parametrize(
    ("name", "model", "count", "cards", "efa", "usd"),
    [
        ("p5.48xlarge", "H100 SXM5 80GB", 8, 32, 32, 55.04),
        ("p5.4xlarge", "H100 SXM5 80GB", 1, 1, 1, 6.88),  # EC2's API says 0 GPUs
        ("p4de.24xlarge", "A100 SXM4 80GB", 8, 4, 4, 27.44705),
        ("p5e.48xlarge", "H200 SXM 141GB", 8, 32, 32, None),  # not sold on demand
        ("p6-b300.48xlarge", "B300 288GB", 8, 17, 16, 142.416),
        ("g6f.xlarge", "L4", 1, 1, 0, 0.2375),  # an eighth of a GPU shows as one
        ("g5g.16xlarge", "T4G", 2, 1, 0, 2.744),
        ("g4ad.xlarge", None, 1, 1, 0, 0.37853),  # AMD: not in the GPU table
        ("trn1.32xlarge", None, 0, 8, 8, 21.5),
    ],
)
def test_instance_types(name, model, count, cards, efa, usd):
    kind = catalog.instance_type(name)
    expected = (model, count, cards, efa, usd)
    assert (kind.gpu_model, kind.gpu_count, kind.network_cards, kind.efa_count, kind.od_usd_per_hour) == expected


def test_zones():
    p5 = catalog.instance_type("p5.48xlarge")
    assert {"us-east-1a", "us-east-1b"} <= set(p5.zones("us-east-1"))
    assert p5.zones("eu-central-2") == ()
    assert all(zone.startswith("us-west-2") for zone in p5.zones("us-west-2")) and p5.zones("us-west-2")


def layout(name):
    return [(each.card_index, each.device_index, each.interface_type) for each in catalog.network_interfaces(name)]


EFA_CARDS = {
    "p5.48xlarge": 32,
    "p4d.24xlarge": 4,
    "p5en.48xlarge": 16,
    "p6-b200.48xlarge": 8,
    "g6e.48xlarge": 4,
    "g6e.24xlarge": 2,
}


@pytest.mark.parametrize(("name", "cards"), EFA_CARDS.items())
def test_interfaces_of_types_with_efa_on_every_card(name, cards):
    expected = [(0, 0, "interface"), (0, 1, "efa-only"), *((card, 0, "efa-only") for card in range(1, cards))]
    assert layout(name) == expected


def test_p6_b300_has_no_efa_on_card_0():
    assert layout("p6-b300.48xlarge") == [(0, 0, "interface"), *((card, 0, "efa-only") for card in range(1, 17))]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("g6e.8xlarge", [(0, 0, "interface"), (0, 1, "efa-only")]),
        ("g6e.xlarge", [(0, 0, "interface")]),
        ("p3dn.24xlarge", [(0, 0, "interface"), (0, 1, "efa-only")]),
    ],
)
def test_interfaces_of_single_card_types(name, expected):
    assert layout(name) == expected


def test_every_gpu_type_stays_within_its_limits_and_takes_one_address():
    for name, kind in catalog.instance_types("aws").items():
        if kind.gpu is None:
            continue
        interfaces = catalog.network_interfaces(name)
        assert sum(each.interface_type != "interface" for each in interfaces) == kind.efa_count, name
        assert len({(each.card_index, each.device_index) for each in interfaces}) == len(interfaces)
        assert catalog.addresses(interfaces) == 1


def test_an_efa_interface_takes_an_address_and_an_efa_only_one_does_not():
    kinds = [
        catalog.NetworkInterface(0, 0, "interface"),
        catalog.NetworkInterface(0, 1, "efa"),
        catalog.NetworkInterface(1, 0, "efa-only"),
    ]
    assert catalog.addresses(kinds) == 2


def test_a_type_whose_cards_are_unknown_has_no_layout():
    assert catalog.instance_type("trn2.48xlarge").network_cards is None
    with pytest.raises(catalog.Unknown):
        catalog.network_interfaces("trn2.48xlarge")


def test_prices():
    price = catalog.price("p5.48xlarge", "on-demand", "us-east-1")
    assert (price.usd_per_hour, price.source, price.as_of) == (55.04, "list price", date(2026, 7, 20))
    spot = catalog.price("g6e.48xlarge", "spot", "us-east-1")
    assert (spot.usd_per_hour, spot.as_of) == (9.642, date(2025, 6, 28))
    assert "estimate" in spot.source


def test_a_declared_price_comes_first_and_has_no_age():
    price = catalog.price("p5.48xlarge", "spot", "eu-north-1", override=24)
    assert (price.usd_per_hour, price.source, price.as_of) == (24.0, "declared", None)


@pytest.mark.parametrize(
    ("name", "market", "region"),
    [
        ("p5e.48xlarge", "on-demand", "us-east-1"),
        ("p5e.48xlarge", "spot", "us-east-1"),
        ("p5.48xlarge", "spot", "eu-north-1"),
        ("p5.48xlarge", "on-demand", "eu-north-1"),
    ],
)
def test_an_unknown_price_is_none(name, market, region):
    assert catalog.price(name, market, region) is None


def test_an_hour_in_a_capacity_block_was_paid_for_with_the_block():
    assert catalog.price("p5.48xlarge", "capacity-block", "us-east-1", override=24).usd_per_hour == 0


def test_a_price_of_an_unknown_type_raises():
    with pytest.raises(catalog.Unknown):
        catalog.price("p9.huge", "on-demand", "us-east-1", override=1.0)


def test_rules():
    rules = catalog.rules()
    assert len(rules) == len({rule.id for rule in rules}) == RULES
    assert {rule.severity for rule in rules} == {"error", "warning"}
    assert catalog.rule("FAB-003").data is None
    assert catalog.software_facts().rules["DRV-001"] is catalog.rule("DRV-001")


def test_rows_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        catalog.gpu("T4").memory_gb = 17
