"""A hall's arithmetic: power, cooling, room, cabling, and what else would fit. Pure: values in, findings out.

- model: the hall; rules: the table of rules, whose conditions are in power, racks, cabling and fabric
- plan: all that is computed, once; capacity, cap: what else fits, and power caps; topology: Slurm's
- tables, pictures, netbox: the plan as tables, as a page, as NetBox's CSV; netbox_import: from NetBox
- seen: cables against ibnetdiscover and LLDP; switch_ports: names of ports
"""
