"""The fields of `nvidia-smi -q`: how its text and its XML (-x) call what --query-gpu calls by one name."""

from typing import Dict, Tuple

# [section of the text | tag of the XML], then rows: field | key in the text | tag in the XML. -: this form has it
# not, or under a name that smi_query.py makes out itself
TABLE = """
[ | ]
name                            | product name                | product_name
uuid                            | gpu uuid                    | uuid
persistence_mode                | persistence mode            | persistence_mode
fan.speed                       | fan speed                   | fan_speed
pstate                          | performance state           | performance_state
compute_mode                    | compute mode                | compute_mode
gpu_recovery_action             | gpu recovery action         | gpu_recovery_action
clocks_event_reasons.all        | clocks event reasons        | clocks_event_reasons
clocks_event_reasons.all        | clocks throttle reasons     | clocks_throttle_reasons
[driver model | driver_model]
driver_model.current            | current                     | current_dm
[mig mode | mig_mode]
mig.mode.current                | current                     | current_mig
mig.mode.pending                | pending                     | pending_mig
[pci | pci]
pci.bus_id                      | bus id                      | pci_bus_id
pcie.link.gen.max               | -                           | pci_gpu_link_info/pcie_gen/max_link_gen
pcie.link.gen.current           | -                           | pci_gpu_link_info/pcie_gen/current_link_gen
pcie.link.width.max             | -                           | pci_gpu_link_info/link_widths/max_link_width
pcie.link.width.current         | -                           | pci_gpu_link_info/link_widths/current_link_width
[fb memory usage | fb_memory_usage]
memory.total                    | total                       | total
memory.used                     | used                        | used
memory.free                     | free                        | free
memory.reserved                 | reserved                    | reserved
[utilization | utilization]
utilization.gpu                 | gpu                         | gpu_util
utilization.memory              | memory                      | memory_util
[ecc mode | ecc_mode]
ecc.mode.current                | current                     | current_ecc
ecc.mode.pending                | pending                     | pending_ecc
[gpu reset status | gpu_reset_status]
reset_status.required           | reset required              | reset_required
reset_status.drain_recommended  | drain and reset recommended | drain_and_reset_recommended
[retired pages | retired_pages]
retired_pages.sbe               | single bit ecc              | multiple_single_bit_retirement/retired_count
retired_pages.dbe               | double bit ecc              | double_bit_retirement/retired_count
retired_pages.pending           | pending page blacklist      | pending_retirement
retired_pages.pending           | pending                     | -
retired_pages.pending_blacklist | -                           | pending_blacklist
[remapped rows | remapped_rows]
remapped_rows.correctable       | correctable error           | remapped_row_corr
remapped_rows.uncorrectable     | uncorrectable error         | remapped_row_unc
remapped_rows.pending           | pending                     | remapped_row_pending
remapped_rows.failure           | remapping failure occurred  | remapped_row_failure
[temperature | temperature]
temperature.gpu                 | gpu current temp            | gpu_temp
temperature.gpu.tlimit          | gpu t.limit temp            | gpu_temp_tlimit
temperature.gpu.slow            | gpu slowdown temp           | gpu_temp_slow_threshold
temperature.gpu.max             | gpu max operating temp      | gpu_temp_max_gpu_threshold
temperature.memory              | memory current temp         | memory_temp
temperature.memory.max          | memory max operating temp   | gpu_temp_max_mem_threshold
[power readings | power_readings]
power.draw                      | power draw                  | power_draw
power.limit                     | power limit                 | power_limit
power.limit                     | -                           | current_power_limit
enforced.power.limit            | enforced power limit        | enforced_power_limit
power.draw.average              | -                           | average_power_draw
power.draw.instant              | -                           | instant_power_draw
[gpu power readings | gpu_power_readings]
power.draw                      | power draw                  | power_draw
power.limit                     | current power limit         | current_power_limit
power.limit                     | -                           | power_limit
power.draw.average              | average power draw          | average_power_draw
power.draw.instant              | instantaneous power draw    | instant_power_draw
power.draw.instant              | instant power draw          | -
enforced.power.limit            | -                           | enforced_power_limit
[clocks | clocks]
clocks.sm                       | sm                          | sm_clock
clocks.gr                       | graphics                    | graphics_clock
clocks.mem                      | memory                      | mem_clock
[max clocks | max_clocks]
clocks.max.sm                   | sm                          | sm_clock
clocks.max.mem                  | memory                      | mem_clock
[fabric | fabric]
fabric.state                    | state                       | state
fabric.status                   | status                      | status
fabric.health.summary           | summary                     | health/summary
fabric.health.bandwidth         | bandwidth                   | health/bandwidth
fabric.health.route_recovery    | route recovery in progress  | health/route_recovery_in_progress
fabric.health.route_unhealthy   | route unhealthy             | health/route_unhealthy
fabric.health.access_timeout    | access timeout recovery     | health/access_timeout_recovery
fabric.health.incorrect_config  | incorrect configuration     | health/incorrect_configuration
[ecc errors | ecc_errors]
ecc.repair.channel              | channel repair pending      | channel_repair_pending
ecc.repair.tpc                  | tpc repair pending          | tpc_repair_pending
ecc.unrepairable.memory         | unrepairable memory         | unrepairable_memory
ecc.sram_threshold_exceeded     | sram threshold exceeded     | aggregate/sram_threshold_exceeded
"""


def _read(table: str) -> Tuple[Dict[Tuple[str, str], str], Dict[str, str]]:
    text: Dict[Tuple[str, str], str] = {}
    xml: Dict[str, str] = {}
    section = tag = ""
    for line in table.strip().splitlines():
        cells = [cell.strip() for cell in line.strip("[]").split("|")]
        if line.startswith("["):
            section, tag = cells
            continue
        field, key, element = cells
        if key != "-":
            text[section, key] = field
        if element != "-":
            xml[f"{tag}/{element}" if tag else element] = field
    return text, xml


TEXT, XML = _read(TABLE)  # (section, key) in lower case -> field; path of tags -> field
