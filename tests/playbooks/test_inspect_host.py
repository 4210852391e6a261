"""What playbooks/files/inspect_host.py makes of what apt and dnf say (their words, as they said them in the lab)."""

import pytest
from programs import load

inspect = load("files/inspect_host.py")
APT = """Reading package lists...
The following packages have unmet dependencies:
 nvidia-driver : Depends: xserver-xorg-video-nvidia (= 580.95.05-1) but 595.58.03-1 is to be installed
                 Depends: libgl1-nvidia-glvnd-glx (= 580.95.05-1) but 595.58.03-1 is to be installed
 nvidia-driver-cuda : Depends: libcuda1 (= 580.95.05-1) but 595.58.03-1 is to be installed
                      Depends: libnvcuvid1 (= 580.95.05-1) but 595.58.03-1 is to be installed
E: Unable to correct problems, you have held broken packages.
E: The following information from --solver 3.0 may provide additional context:
"""
EPEL = """Error:
 Problem: conflicting requests
  - nothing provides dkms needed by kmod-nvidia-open-dkms-3:580.95.05-1.el9.x86_64 from nv
(try to add '--skip-broken' to skip uninstallable packages)
"""
HIDDEN = """All matches were filtered out by modular filtering for argument: nvidia-driver-cuda-580.95.05
Error: Unable to find a match: nvidia-driver-cuda-580.95.05
"""
CURE = "write module_hotfixes: true at their repository in base_dnf_repositories"
ABSENT = """No match for argument: nvidia-driver-cuda-1.2
Error: Unable to find a match: nvidia-driver-cuda-1.2
"""


def test_apt_names_the_package_and_what_it_can_not_have():
    said = inspect.apt_reason(APT)
    first, second, third = said.split("; ")
    assert first.startswith("nvidia-driver Depends: xserver-xorg-video-nvidia (= 580.95.05-1) but 595.58.03-1")
    assert second.startswith("nvidia-driver Depends: libgl1") and third.startswith(
        "nvidia-driver-cuda Depends: libcuda1"
    )
    assert inspect.apt_reason(APT[APT.index("E: ") :]) == "Unable to correct problems, you have held broken packages."


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (EPEL, "nothing provides dkms needed by kmod-nvidia-open-dkms-3:580.95.05-1.el9.x86_64 from nv"),
        (
            HIDDEN,
            f"module streams hide nvidia-driver-cuda-580.95.05: {CURE}",
        ),
        (ABSENT, "no repository has nvidia-driver-cuda-1.2"),
        ("", "no message"),
    ],
)
def test_dnf_says_why(said, reason):
    assert inspect.dnf_reason(said) == reason
