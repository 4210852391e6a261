"""Which versions of driver, kernel module and CUDA fit which GPU. Pure: the facts are arguments."""
