"""A whole site on one machine, for the demo and the tests. The product never imports it.

| room | what is in it |
|---|---|
| system, names | what all rooms use: LabError, commands, locks; fixed names and addresses |
| go | programs built from Go modules |
| timeline, served | of stand-ins: their clock; their servers, answers and faults |
| machines, switchboard | of a cloud's stand-in: what is behind its machines, what a demo asks it |
| bmc, aws, azure, google | stand-ins for BMCs, AWS, Azure and Google Compute Engine: they know no hosts |
| ci | a stand-in for GitHub and its runner: runs .github/workflows |
| aws_plugin, azure_plugin, google_plugin, kubernetes_plugin, provider | stand-ins for Pulumi's plugins, their base |
| hosts | the box (one lab); its hosts' disks, hardware, fabric, power; what joins stand-ins to them |
| pulumi | the real pulumi CLI, built once, and our language host for Python |
| kubernetes | a real Kubernetes control plane with stand-in nodes, beside the box |
| logs | log centres: VictoriaLogs, built once, and OpenSearch |
| packages | the signed apt repositories of the hosts; stubs of NVIDIA's packages |
| site, hall | a lab as its users see it; a bigger hall |
| demo | the main job, end to end |
| play | on a lab that a demo kept: a shell, jobs, faults, prices (`ironburst lab`) |
| tests | of the rooms above, by their names; what is tested on the lab's hosts is in the product's tests, tests/lab |

A room imports those above it, never one below; tests/test_layers.py checks it. A stand-in's `__main__` is the
exception: it starts what joins the stand-in to hosts.
"""
