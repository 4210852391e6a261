"""The lab's stand-in for Pulumi's `azure-native` plugin: Pulumi's provider protocol, and lab.azure behind it."""
