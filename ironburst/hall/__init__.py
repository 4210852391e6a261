"""A hall's arithmetic: power, cooling, room, cabling, and what else would fit. Pure: values in, findings out."""
