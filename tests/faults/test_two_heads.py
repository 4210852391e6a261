"""Two heads and one ledger in PostgreSQL. The first one dies at random moments: its process, its host, or its network;
the second one goes on, with leases in every state. Nothing is lost, nothing is rented twice, nothing is unaccounted.

What a death leaves is as PostgreSQL has it: of a process the socket closes at once; of a host or a network nothing
comes, and the server ends the session when its keepalives aren't answered (here by pg_terminate_backend at the same
moment of the story). A partitioned head lives on: it is let go on where it was, and may do nothing more.
"""
