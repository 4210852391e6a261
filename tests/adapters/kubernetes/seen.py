"""A cluster of raw objects, as the adapter sees it: for tests."""

from ironburst.adapters.kubernetes import objects, pods, queue
from tests.fakes.kube_objects import SITE


def seen(raw_pods, jobs=(), nodes=(), groups=(), claims=(), volumes=(), namespaces=(), classes=(), site=SITE):
    def keyed(views):
        return {view.key: view for view in views}

    return queue.Objects(
        keyed(pods.read_pod(raw, site) for raw in raw_pods),
        keyed(map(objects.read_node, nodes)),
        keyed(objects.read_job(raw, site) for raw in jobs),
        keyed(map(objects.read_group, groups)),
        keyed(map(objects.read_claim, claims)),
        keyed(objects.read_volume(raw, site) for raw in volumes),
        namespaces=keyed(map(objects.read_default, namespaces)),
        classes=keyed(objects.read_storage_class(raw, site) for raw in classes),
    )


def jobs_of(*args, site=SITE, **more):
    return queue.jobs_of(seen(*args, site=site, **more), site)


def only(*args, **more):
    (found,) = jobs_of(*args, **more)
    return found
