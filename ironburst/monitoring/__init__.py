"""What a site's Prometheus and Alertmanager read. Pure, but for reading its own file.

- rules, with alerts.yaml: the alert rules, the same for every site
- targets: what is scraped; receivers: who is told
- dashboards, with dashboards.yaml: what Grafana shows
- receiving: the gate for what rented nodes push; remote_write: metrics; log_relay: lines
- site_files: all of these, for one site
"""
