"""What AWS offers: instance types, regions, prices, releases of EKS."""
