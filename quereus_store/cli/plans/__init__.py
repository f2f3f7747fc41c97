"""Plans for people: as a picture (``drawing``), as a page around it (``page``), as text (``listing``).

``layout`` decides where the box of each operator stands.
"""
