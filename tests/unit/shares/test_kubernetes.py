"""Shares as objects of Kubernetes and of Kueue. What a real API server makes of them: lab/tests/kubernetes."""

from ironburst import kubernetes_rights
from ironburst.shares import TeamShare, kubernetes, kueue, quotas

VISION = TeamShare("vision", 16, weight=2, nodes=("dgx04",))
NLP = TeamShare("nlp", 8, most=12)
STRICT = TeamShare("strict", 4, over_quota=False)
ALL, OWN = [VISION, NLP, STRICT], {"vision": 8, "nlp": 0, "strict": 0}


def hard(objects):
    return {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each["spec"]["hard"]["requests.nvidia.com/gpu"]
        for each in objects
        if each["kind"] == "ResourceQuota"
    }


def test_the_quotas_of_a_namespace():
    assert hard(kubernetes.objects(ALL, OWN, quotas(ALL, 40, []))) == {
        ("vision", "ironburst-guaranteed"): "16",
        ("vision", "ironburst-over-quota"): "40",
        ("vision", "ironburst-own"): "8",
        ("nlp", "ironburst-guaranteed"): "8",
        ("nlp", "ironburst-over-quota"): "12",
        ("nlp", "ironburst-own"): "0",
        ("nlp", "ironburst-most"): "12",
        ("strict", "ironburst-guaranteed"): "4",
        ("strict", "ironburst-over-quota"): "0",
        ("strict", "ironburst-own"): "0",
    }


def test_the_controller_may_change_what_changes_with_the_time():
    (rule,) = [rule for rule in kubernetes_rights.CLUSTER if "resourcequotas" in rule.resources]
    now = quotas(ALL, 40, [])
    live = kubernetes.live(now)
    assert set(rule.names) == {name for _, name in live} and set(rule.verbs) == {"get", "patch"}
    assert set(live) <= hard(kubernetes.objects(ALL, OWN, now)).keys()


def test_the_classes_leave_services_and_the_autoscaler_alone():
    value = {each["metadata"]["name"]: each["value"] for each in kubernetes.classes()}
    unsaid, expendable = 0, -10  # a pod without a class; below the second Cluster Autoscaler adds no node
    assert value[kubernetes.GUARANTEED] == value[kubernetes.OWN] == unsaid
    assert expendable <= value[kubernetes.OVER_QUOTA] < value[kubernetes.GUARANTEED]
    may = {each["metadata"]["name"]: each["preemptionPolicy"] for each in kubernetes.classes()}
    assert may[kubernetes.OVER_QUOTA] == may[kubernetes.OWN] == "Never"
    assert not any(each["globalDefault"] for each in kubernetes.classes())


def test_own_nodes_are_marked_and_nobody_elses_taints_are_lost():
    assert kubernetes.node_commands(ALL) == [
        ["kubectl", "label", "node", "dgx04", "ironburst.io/team=vision", "--overwrite"],
        ["kubectl", "taint", "node", "dgx04", "ironburst.io/team=vision:NoSchedule", "--overwrite"],
    ]


def of(objects, kind, name):
    return next(each["spec"] for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))


def gpus(spec, flavor):
    flavors = {each["name"]: each["resources"] for group in spec["resourceGroups"] for each in group["flavors"]}
    (resource,) = flavors[flavor]
    return {key: value for key, value in resource.items() if key != "name"}


def test_kueue_lends_what_is_guaranteed_and_takes_it_back():
    found = kueue.objects(ALL, 40, OWN, quotas(ALL, 40, []))
    assert gpus(of(found, "Cohort", "ironburst"), kueue.SHARED) == {"nominalQuota": "12"}  # nobody's: 40 - 28
    vision, nlp, strict = (of(found, "ClusterQueue", name) for name in ("vision", "nlp", "strict"))
    assert gpus(vision, kueue.SHARED) == {"nominalQuota": "16"}
    assert gpus(nlp, kueue.SHARED) == {"nominalQuota": "8", "borrowingLimit": "4"}
    assert gpus(strict, kueue.SHARED) == {"nominalQuota": "4", "borrowingLimit": "0"}
    alone = {"nominalQuota": "8", "borrowingLimit": "0", "lendingLimit": "0"}
    assert gpus(vision, "ironburst-own-vision") == alone
    assert vision["resourceGroups"][0]["flavors"][0]["name"] == "ironburst-own-vision"
    for queue in (vision, nlp, strict):
        assert queue["preemption"]["reclaimWithinCohort"] == "Any"
        assert queue["preemption"]["withinClusterQueue"] == "Never"
        assert queue["preemption"]["borrowWithinCohort"] == {"policy": "Never"}
    assert (vision["fairSharing"], nlp["fairSharing"]) == ({"weight": "2"}, {"weight": "1"})
    flavor = of(found, "ResourceFlavor", "ironburst-own-vision")
    assert flavor["nodeLabels"] == {"ironburst.io/team": "vision"} and flavor["tolerations"][0]["value"] == "vision"


def test_kueue_is_told_no_more_than_there_is():
    found = kueue.objects(ALL, 14, OWN, quotas(ALL, 14, []))
    nominal = [int(gpus(of(found, "ClusterQueue", name.account), kueue.SHARED)["nominalQuota"]) for name in ALL]
    assert nominal == [8, 4, 2] and gpus(of(found, "Cohort", "ironburst"), kueue.SHARED) == {"nominalQuota": "0"}


def test_rented_gpus_come_last_and_by_our_check():
    """Without a check Kueue knows nothing of them."""
    plain = kueue.objects(ALL, 40, OWN, quotas(ALL, 40, []))
    found = kueue.objects(ALL, 40, OWN, quotas(ALL, 40, []), 64, "ironburst-lab")
    assert "ironburst-rented" not in str(plain) and "admissionChecks" not in str(plain)
    (cohort,) = [each["spec"] for each in found if each["kind"] == "Cohort"]
    shared, rented = cohort["resourceGroups"][0]["flavors"]
    assert (shared["name"], rented["name"]) == ("ironburst-shared", "ironburst-rented")
    assert rented["resources"] == [{"name": "nvidia.com/gpu", "nominalQuota": "64"}]
    for queue in [each["spec"] for each in found if each["kind"] == "ClusterQueue"]:
        assert queue["resourceGroups"][0]["flavors"][-1]["name"] == "ironburst-rented"
        (check,) = queue["admissionChecksStrategy"]["admissionChecks"]
        assert check == {"name": "ironburst-lab", "onFlavors": ["ironburst-rented"]}
        assert queue["flavorFungibility"]["whenCanPreempt"] == "MayStopSearch"
