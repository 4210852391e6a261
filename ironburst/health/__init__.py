"""The gate's judgement of a node's health, compared with what is declared and the catalogue.

Pure, standard library only, Python 3.6: the role node_health copies every module of this folder to every GPU node.

- join, accept: the two levels; findings: their results; settings, expectation: what is declared
- tools: the parsers by tool: smi (smi_csv, smi_query, smi_table, smi_topo, smi_fields), dcgmi, dcgmi_diag,
  fabricmanager, ibstat, ib_write_bw, lspci, nccl_tests, xid; reading: what they share
- gpus, rules: fields of nvidia-smi, judged; models, tables, thresholds: the catalogue
- shared: causes that many nodes of a hall may have at once; aws, google: their fabrics
"""
