"""The catalog: how schema objects and the database's own records are kept in a key space.

==============  ==========================================================================
module          holds
==============  ==========================================================================
``layout``      the map of the key space: store ids, prefixes, reserved keys
``meta``        format stamp, head (commit number, schema version), ids, markers
``entries``     one catalog entry as bytes, with its checksum
``bundles``     schema objects to entries and back, by their canonical DDL
``storage``     loading and saving whole catalogs
``statistics``  what ANALYZE found out
==============  ==========================================================================

Chapter: store-and-modules, sections 1, 5, 6, 7 and 15.
"""
