"""Bare-metal nodes: what a BMC reports, compared with what is declared, and the Pulumi provider that does so."""
