"""From saved pages of NetBox's REST API to a hall that could be declared: what NetBox knows; what it lacks, to be
declared; what isn't taken over, and why. Nothing is guessed. Pure.
"""
