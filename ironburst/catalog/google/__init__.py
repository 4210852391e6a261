"""What Google Cloud offers: machine types with GPUs, regions, prices."""
