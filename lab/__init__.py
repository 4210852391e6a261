"""A whole site on one machine, for the demo and the tests. The product never imports it."""
