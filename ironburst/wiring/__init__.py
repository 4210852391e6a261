"""Which cloud a document or a stack file names, and what the verbs need of it.

- clouds: the table, a row for each cloud; provider: what a row has; aws, none: the rows
"""
