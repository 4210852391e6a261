"""What a person writes: the declaration in stacks/Pulumi.<env>.yaml, typed and checked.

- models: the whole declaration. Its sections: burst_models, cloud_models, cloud_network_models, data_models,
  hall_models, scheduler_models, cluster_models and bridge_models and gpu_support_models (Kubernetes), karpenter_models,
  shares_models, user_models, software_models, monitoring_models, energy_models; of owned nodes gpu_models,
  node_settings, bios_models, firmware_models, install_models, allowance_models
- types, ranges, firmware_versions: values; schema: all of it as JSON Schema, for editors
- load, yaml_file: from the file to the models; refusals, finding: what is wrong with it, in words
- checks: what is wrong between sections, and by the catalogue; halls: a hall as ironburst.hall sees it
- software: the groups whose versions are solved; lockfile: what is locked; stack: file, lock and secrets together
- valid, declared_halls: a stack file as verbs need it
- prices, estimate, estimates, spot_notice, upgrades: what follows from a declaration
- clouds: those that can be declared; aws, azure, google: what a stack file declares of each
"""
