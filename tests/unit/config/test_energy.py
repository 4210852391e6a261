"""What is declared of electricity and of idle GPUs: what it becomes in the document, and what is refused."""

from pathlib import Path

import pytest

from ironburst import catalog
from ironburst.config import load
from ironburst.config.checks.energy import energy
from ironburst.document.build_monitoring import monitoring

STAGING = Path(__file__).parents[3] / "stacks/Pulumi.staging.yaml"
URL = {"url": "http://10.0.0.10:9090"}


@pytest.fixture
def declared():
    return load.read_value(STAGING)


def of(value, **section):
    return load.from_value(value | {"monitoring": section})


def test_countries_become_grams_with_their_year(declared):
    config = of(declared, pue=1.3, carbon={"halls": {"hall-a": "DE"}})
    assert list(energy(config)) == []
    made = monitoring(config)
    known, cloud = catalog.electricity("DE"), catalog.electricity(catalog.region(config.cloud.region).country)
    assert made.halls["hall-a"].model_dump() == {
        "pue": 1.3,
        "gco2_per_kwh": known.gco2_per_kwh,
        "origin": f"Germany {known.year}, Ember",
    }
    assert (made.cloud.pue, made.cloud.gco2_per_kwh) == (None, cloud.gco2_per_kwh) and made.pue == 1.3


def test_ones_own_grams_count_and_so_does_a_halls_own_pue(declared):
    config = of(declared, pue={"hall-a": 1.2}, carbon={"halls": {"hall-a": 27.5}, "cloud": 0})
    made = monitoring(config)
    assert (made.halls["hall-a"].pue, made.halls["hall-a"].gco2_per_kwh, made.pue) == (1.2, 27.5, None)
    assert (made.cloud.gco2_per_kwh, made.cloud.origin) == (0.0, "declared")


def test_without_carbon_nothing_is_told_of_emissions(declared):
    assert monitoring(load.from_value(declared)).model_dump(exclude_defaults=True) == {}
    made = monitoring(of(declared, pue=1.3))
    assert made.cloud is None and made.halls["hall-a"].gco2_per_kwh is None


@pytest.mark.parametrize(
    ("section", "path", "words"),
    [
        ({"carbon": {"halls": {"hall-z": "DE"}}}, "carbon.halls.hall-z", "known: hall-a"),
        ({"pue": {"hall-z": 1.2}}, "pue.hall-z", "known: hall-a"),
        ({"carbon": {"halls": {"hall-a": "UK"}}}, "carbon.halls.hall-a", "Unknown country"),
        ({"carbon": {"cloud": "XX"}}, "carbon.cloud", "Unknown country"),
    ],
)
def test_what_is_not_known_is_told_where_it_was_written(declared, section, path, words):
    found = list(energy(of(declared, **section)))
    assert [each.path for each in found] == [f"config.ironburst:cluster.monitoring.{path}"] and words in found[
        0
    ].message


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"carbon": {"halls": {"hall-a": False}}}, "halls.hall-a"),  # NO without quotes
        ({"carbon": {"halls": {"hall-a": "Germany"}}}, "halls.hall-a"),
        ({"carbon": {"halls": {"hall-a": -1}}}, "halls.hall-a"),
        ({"pue": 0.9}, "pue"),
        ({"idle": {}}, "no url"),
        ({"idle": {"after": "5m"}} | URL, "10m or more"),
        ({"idle": {"after": "3h"}} | URL, "longer than team"),
        ({"idle": {"team": "5h"}} | URL, "longer than end_after"),
        ({"idle": {"end": "rented"}} | URL, "write watts"),
        ({"idle": {"grace": "1m"}} | URL, "10m or more"),
        ({"idle": {"end": "yes", "watts": 90}} | URL, "idle.end"),
    ],
)
def test_bad_input_is_refused(declared, section, words):
    with pytest.raises(load.ConfigError) as error:
        of(declared, **section)
    assert any(words in f"{each.path} {each.message}" for each in error.value.findings), error.value.findings


def test_idle_gpus_in_seconds(declared):
    made = monitoring(of(declared, idle={"end": "rented", "watts": 120}, **URL)).idle
    assert (made.after_s, made.team_s, made.end_after_s, made.grace_s) == (3600, 7200, 14400, 1800)
    assert (made.end, made.watts) == ("rented", 120)


def test_every_region_is_in_a_country_of_the_table():
    for region in catalog.regions().values():
        assert catalog.electricity(region.country).gco2_per_kwh > 0, region
    with pytest.raises(catalog.Unknown, match="'DE'"):
        catalog.electricity("Germany")
