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

BIOS_QUIRKS = {
    "bios-needs-etag": "a PATCH of the settings without If-Match is 428, with an old one 412 (AMI, Lenovo)",
    "bios-weak-etag": "the header has a weak ETag, and a PATCH with it is 412: it needs the strong one (AMI, Gigabyte)",
    "bios-refuses-time": "SettingsApplyTime is refused as unknown, and no SupportedApplyTimes is said (Supermicro)",
    "bios-needs-job": "settings without an apply time wait for ever; with one a job takes them; no second PATCH (Dell)",
    "bios-unlinked": "no @Redfish.Settings, and the settings are at Bios/SD all the same (Gigabyte)",
    "bios-busy": "a PATCH is refused with 503 for a while: the machine is in its self-test",
    "bios-lags": "what waits, and what is in force, is shown late",
    "bios-waits-a-start": "the first start takes nothing, the next one does",
    "bios-drops": "a setting is accepted and dropped in the self-test, for it depends on another",
    "bios-unsaid-before-a-start": "no attributes until the machine has started once (AMI, Lenovo)",
    "bios-without-registry": "the registry that it names is not there",
    "bios-nowhere": "no Bios at all",
    "setup-once": "the setup can be the next start's target, and not every start's",
    "no-setup": "the setup is no target of a start (HPE iLO 6 on some Gen11: no override is taken at all)",
}
UPDATE_QUIRKS = {
    "no-simple-update": "SimpleUpdate takes NFS and TFTP alone; images are pushed (NVIDIA, OpenBMC)",
    "no-push": "no MultipartHttpPushUri",
    "protocols-in-action-info": "the protocols are in an ActionInfo",
    "refuses-targets": "Targets is refused as unknown (HPE iLO, Dell)",
    "apply-time-offered": "OperationApplyTime may be given; elsewhere it is refused",
    "update-busy": "refused with 409 for a while: another job holds the service",
    "location-is-the-task": "Location is the task, which answers 200 from the first on (Dell, AMI)",
    "no-location": "202 without Location: the task is in the body (OpenBMC)",
    "empty-answer": "202 without a body",
    "hides-payload": "a task does not say what it was asked",
    "task-vanishes": "a task that has ended is gone at the next look",
    "task-fails": "a task ends in Exception",
    "completed-critical": "Completed, and TaskStatus is Critical (Dell: no progress in the allocated time)",
    "completed-and-old": "Completed, OK, and the version is what it was",
    "task-waits-for-a-start": "a task waits, Suspended, for the machine's next start (Dell: Scheduled)",
    "version-after-a-start": "the version is the old one until the machine's next start (HPE, NVIDIA)",
    "lists-staged": "what is staged is listed beside, as NAME_pending (NVIDIA)",
    "version-lags": "the inventory shows the old version for some reads",
    "bmc-restarts": "the BMC restarts in the middle: sessions and tasks are gone, and it is away for a while",
}
