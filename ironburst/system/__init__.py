"""Tools of this machine: files, signals, secrets, programs that are sent to a host, times and tables for people."""
