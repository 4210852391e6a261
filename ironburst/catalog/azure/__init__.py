"""Azure's rows: sizes of machines, prices, regions."""
