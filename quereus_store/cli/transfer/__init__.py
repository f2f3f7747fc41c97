"""Import and export of files: readers, type inference, the importer and the exporter.

A reader turns a file into batches of rows with their line numbers and names what it could not read;
inference looks at all values of a column and picks the narrowest declared type; the importer
creates the table when it is missing, inserts batch by batch and isolates the rows that the table
refuses.  Nothing is dropped silently: every row is either in the table or, with its line number and
the reason, in the rejected-rows file.
"""
