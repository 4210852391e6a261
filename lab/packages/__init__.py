"""Packages for the lab's hosts: signed apt repositories, one of them with stubs of NVIDIA's packages."""
