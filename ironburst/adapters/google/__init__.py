"""Google Compute Engine. No row of ironburst.wiring.clouds leads here yet (docs/adr/0121)."""
