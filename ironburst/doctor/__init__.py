"""What `ironburst doctor` looks at: is what a declared cluster needs there, and usable? Pure: what was answered in,
findings out. Each subject has a module with `check(site)`; `account` is what is asked, `adapters/aws_doctor` asks.
"""
