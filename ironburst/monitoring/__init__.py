"""What a site's Prometheus and Alertmanager read. Pure, but for reading its own file.

- rules, with alerts.yaml: the alert rules, the same for every site
- targets: what is scraped; receivers: who is told
- dashboards, with dashboards.yaml: what Grafana shows
- site_files: all of these, for one site; kubernetes: the same as objects for Prometheus' operator
- receiving: the gate before it for what rented nodes push, with remote_write, the format of metrics; log_relay: lines
"""
