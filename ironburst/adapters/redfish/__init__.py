"""BMCs over Redfish: the client, power, boot, BIOS, firmware, discovery, and a node's life cycle on them."""
