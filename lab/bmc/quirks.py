"""What real BMCs refuse, delay or say differently around an installation: by name, with where it was seen.

The emulator has none of them until a Fault names it. docs/adr/0068 says how the product copes with each.
"""

QUIRKS = {
    "media-of-system": "VirtualMedia is under the system, not its manager (Dell iDRAC since 6.00.02; Redfish 2021.1)",
    "second-medium-refused": "a drive with a medium takes no other: HTTP 409 (HPE, OpenBMC)",
    "insert-is-a-task": "InsertMedia answers 202 with a task, and shows the medium later",
    "stale-medium": "a medium that was ejected is shown for a while longer (Dell iDRAC)",
    "name-alone": "Image is null, and ImageName is the last part of the URL",
    "needs-protocol": "InsertMedia without TransferProtocolType: HTTP 400 ActionParameterMissing (Supermicro, Cisco)",
    "refuses-defaults": "InsertMedia with Inserted or WriteProtected: HTTP 400 (Supermicro X11, X12)",
    "eject-needs-body": "EjectMedia without a body: HTTP 400 or 415 (HPE iLO)",
    "drive-of-the-screen": "the first drive is the remote screen's alone and has no InsertMedia (OpenBMC, Cisco)",
    "needs-etag": "a PATCH without If-Match is refused with 428, with an old one with 412 (Lenovo, AMI, Gigabyte)",
    "needs-mode": "a boot target without BootSourceOverrideMode UEFI is refused (it was in legacy mode)",
    "no-mode": "BootSourceOverrideMode beside a target is refused (it has one mode alone)",
    "cd-is-usb": "virtual media start as UsbCd, and Cd starts nothing (Supermicro X11, X12)",
    "once-lost": "an override of the next start is forgotten when the power goes off",
    "once-kept": "an override for one start stays for all",
    "power-lags": "PowerState shows the old state for some reads after a reset",
    "no-clean-off": "no GracefulShutdown or GracefulRestart among its ResetType values",
    "on-twice-refused": "On while it is on: HTTP 409 or 400 (HPE iLO InvalidOperationForSystemState)",
    "few-sessions": "two sessions at most",
}
