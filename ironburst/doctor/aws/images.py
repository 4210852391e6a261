"""Images: of pools as their parameter names them, of fixed groups as declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ironburst.config.aws.models import AwsGroup, AwsPool
from ironburst.doctor.aws.account import ImageFacts, TypeFacts
from ironburst.doctor.aws.site import AwsSite
from ironburst.doctor.checks import CheckResult, State, answered, judged
from ironburst.nodes.naming import image_parameter

CHECK = "images"
DEFAULT_BOOT = {"arm64": "uefi"}  # of an image that names no mode; x86's is legacy-bios


def check(site: AwsSite) -> Iterator[CheckResult]:
    """A group's image, then each pool's."""
    for who, nodes in site.nodes:
        yield from answered(CHECK, f"image of {who}", _of(site, who, nodes))


def _of(site: AwsSite, who: str, nodes: AwsGroup | AwsPool) -> Iterator[CheckResult]:
    image_id = nodes.image if isinstance(nodes, AwsGroup) else None
    if isinstance(nodes, AwsPool):
        parameter = image_parameter(site.name, nodes.name)
        image_id = site.account.parameter(parameter)
        if image_id is None:
            seen = f"there is no SSM parameter {parameter}: nothing is rented without an image"
            yield CheckResult(CHECK, f"image of {who}", "fail", seen, _bake(nodes))
            return
    assert image_id is not None
    image, looked_at = site.account.image(image_id), f"image {image_id} of {who}"
    if image is None:
        seen = "there is no such image in this region, or it isn't shared with this account"
        todo = (
            _bake(nodes) if isinstance(nodes, AwsPool) else f"share it with this account, or declare another at {who}"
        )
        yield CheckResult(CHECK, looked_at, "fail", seen, todo)
        return
    facts = site.account.types(nodes.types)
    seen = f"{image.architecture}, root {image.root_device} of {image.root_gb} GiB, owner {image.owner}"
    yield from judged(CHECK, looked_at, _wrong(site, nodes, image, facts), seen)


def _bake(pool: AwsPool) -> str:
    return f"bake one: ironburst image {pool.name} --base-image AMI --document DOCUMENT --inventory INVENTORY"


def _wrong(
    site: AwsSite, nodes: AwsGroup | AwsPool, image: ImageFacts, facts: Mapping[str, TypeFacts]
) -> Iterator[tuple[State, str, str]]:
    """(fail or warn, what was seen, what to do)."""
    another = _bake(nodes) if isinstance(nodes, AwsPool) else "declare an image of the system that suits the type"
    if image.state != "available":
        yield "fail", f"it is {image.state}", f"wait until it is available, or {another}"
    for name, kind in facts.items():
        yield from _unsuited(name, kind, image, another)
    if image.root_device_type != "ebs" or not image.root_gb:
        yield "fail", f"its root device {image.root_device} ({image.root_device_type}) is no EBS volume", another
    if not image.ena:
        yield "fail", "it isn't marked for enhanced networking (EnaSupport)", another
    if isinstance(nodes, AwsPool) and not _allowed(site, image):
        seen = f"its owner is {image.owner_alias or image.owner}, and the controller may only launch declared owners'"
        yield (
            "fail",
            seen,
            f"add {image.owner_alias or image.owner} to cloud.images.owners and run `pulumi up`, or {another}",
        )
    yield from _disk(nodes, image)
    if image.deprecated and image.deprecated <= site.now:
        yield "warn", f"its owner deprecated it on {image.deprecated:%Y-%m-%d}", another


def _unsuited(name: str, kind: TypeFacts, image: ImageFacts, another: str) -> Iterator[tuple[State, str, str]]:
    if image.architecture not in kind.architectures:
        yield "fail", f"it is of {image.architecture}; {name} is {', '.join(kind.architectures)}", another
        return
    mode = image.boot_mode or DEFAULT_BOOT.get(image.architecture, "legacy-bios")
    if mode != "uefi-preferred" and kind.boot_modes and mode not in kind.boot_modes:
        yield "fail", f"it boots by {mode}; {name} by {', '.join(kind.boot_modes)}", another


def _allowed(site: AwsSite, image: ImageFacts) -> bool:
    own = {site.account.caller().account, *site.cloud.images.owners}
    return image.owner in own or image.owner_alias in own


def _disk(nodes: AwsGroup | AwsPool, image: ImageFacts) -> Iterator[tuple[State, str, str]]:
    """A fixed node's disk is made in the declared size, a rented one's has the image's."""
    least = f"{nodes.root_disk_gb} GiB are declared as root_disk_gb, the image's root volume has {image.root_gb}"
    if isinstance(nodes, AwsGroup) and nodes.root_disk_gb < image.root_gb:
        yield "fail", least, f"write {image.root_gb} or more as root_disk_gb"
    if isinstance(nodes, AwsPool) and image.root_gb and nodes.root_disk_gb != image.root_gb:
        yield "warn", least, f"{_bake(nodes)}; a rented node's disk is the image's"
