"""The page of `ironburst serve`: what the controller's files say, for people, in a browser or as one file.

`view` makes the template's values of plain data; `chart` the pictures; `render` the HTML; `web` serves it. `source` gathers that data
from the files.
"""
