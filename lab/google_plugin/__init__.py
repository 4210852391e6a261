"""The lab's stand-in for Pulumi's `gcp` plugin: Pulumi's provider protocol on one side, lab.google on the other."""
