"""The lab's BMCs: a Redfish service a node, whose power button is what it is given.

The protocol is real Redfish (the parts of it that sushy and an inventory need), the hardware is made up.
`python -m lab.bmc --prefix P` serves every bare-metal host of the lab P on its BMC address, until it is ended.
"""

from lab.bmc.faults import Fault, write_fault
from lab.bmc.machine import Machine
from lab.bmc.service import Bmc, Power

__all__ = ["Bmc", "Fault", "Machine", "Power", "write_fault"]
