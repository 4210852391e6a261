"""A node's power button over Redfish: cleanly, by force only where that is asked for, and looked at afterwards."""

from __future__ import annotations

import time
from typing import Any

import sushy

from ironburst.adapters.redfish.client import BmcAccess, BmcError, BmcUnavailable, _host_system, _login, reset_type
from ironburst.baremetal import makers
from ironburst.baremetal.said import text

CLEAN_S = 300.0
"""seconds that a system has to end"""
SWITCH_S = 60.0
"""seconds until a BMC shows what it has switched"""


def power_off(access: BmcAccess, *, force: bool = False, clean_s: float | None = None, host: str | None = None) -> None:
    """Shut the node down and wait until it is off: `clean_s` seconds (None: CLEAN_S), and then only by `force`.
    `host`: the path of the machine, where it is known already. Raises BmcError.
    """
    with _login(access, limited=False) as root:
        system = root.get_system(host) if host else _host_system(access, root)
        shut_down(access, system, force, clean_s)


def restart(access: BmcAccess, *, force: bool = False) -> None:
    """Shut it down, and switch it on: every BMC offers that, and it is seen to have restarted. One that is off starts.
    Raises BmcError.
    """
    with _login(access, limited=False) as root:
        system = _host_system(access, root)
        shut_down(access, system, force)
        system.reset_system(reset_type(system, sushy.RESET_ON, sushy.RESET_FORCE_ON))
        if not _is_within(system, sushy.POWER_STATE_ON, SWITCH_S):
            raise BmcUnavailable(f"{access.node}: BMC {access.address} accepted On, and the node is not on: look at it")


def shut_down(access: BmcAccess, system: Any, force: bool, clean_s: float | None = None) -> None:
    """As `power_off`, logged in. Raises BmcError."""
    clean_s = CLEAN_S if clean_s is None else clean_s
    if system.power_state == sushy.POWER_STATE_OFF:
        return
    check_machine(access, system)
    bmc = f"{access.node}: BMC {access.address}"
    clean = sushy.RESET_GRACEFUL_SHUTDOWN in system.get_allowed_reset_system_values()
    if clean and clean_s:
        system.reset_system(sushy.RESET_GRACEFUL_SHUTDOWN)
        if _is_within(system, sushy.POWER_STATE_OFF, clean_s):
            return
    if not force:
        why = f"the node has not shut down in {clean_s:g} s" if clean else f"{bmc} offers no GracefulShutdown"
        raise BmcUnavailable(f"{access.node} is still on: {why}: shut it down yourself, or cut it off with --force")
    system.reset_system(sushy.RESET_FORCE_OFF)
    if not _is_within(system, sushy.POWER_STATE_OFF, SWITCH_S):
        raise BmcUnavailable(f"{bmc} accepted ForceOff, but the node is still on after {SWITCH_S:g} s")


def check_machine(access: BmcAccess, system: Any) -> None:
    """A BMC's address that is another machine's would end that one's jobs. Raises BmcError."""
    places = (*makers.SERIALS, "SKU", makers.SERVICE_TAG)
    said = {said for at in places if (said := text(system.json, at))}
    if access.serial and said and access.serial not in said:
        raise BmcError(
            f"{access.node}: BMC {access.address} is of the machine {' or '.join(sorted(said))}, declared is "
            f"{access.serial}: nothing is switched; correct the address or the serial number"
        )


def _is_within(system: Any, state: Any, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    system.refresh(force=True)
    while system.power_state != state:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)  # Redfish has no wait: poll, gently, for BMCs are slow computers
        system.refresh(force=True)
    return True
