"""The lab's hosts: the box in which they live, their disks, hardware, network and fabric, and their power.

`bmcs` and `instances` join them to the stand-ins: a BMC's power button is a host's, a cloud instance is a host.
"""
