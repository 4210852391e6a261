"""The page of `ironburst serve`: what the controller's files say, for people, in a browser or as one file.

`source` gathers plain data from the files; `view` makes the template's values of it; `chart` the pictures; `render` the
HTML; `web` serves it.
"""
