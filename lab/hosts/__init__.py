"""The lab's hosts: the box in which they live, their disks, hardware, network and fabric, and their power.

`bmcs`, `instances` and `rented` join them to the stand-ins: a BMC's power button and a cloud instance are a host's.
"""
