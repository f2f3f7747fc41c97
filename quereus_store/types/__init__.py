"""Types: the value domain, logical types, conversion, comparison, collations, time and JSON.

A SQL value is a plain Python object (``None``, ``bool``, ``int``, ``float``, ``str``, ``bytes``, ``list``,
``dict``); what it *means* is the business of the logical type that an expression or a column announces.
So every module here comes in two halves: a static one, which looks at types only and is asked while a
statement is planned, and a dynamic one, which looks at values and is called, inlined or bypassed by the
generated code.

=================  ===============================================================================
module             holds
=================  ===============================================================================
``values``         ``Value``, storage classes, ``typeof``, ``truth``, ``to_text``, text to number
``logical``        ``LogicalType`` and its singletons, ``type_from_name``, ``TypeRegistry``
``conversion``     ``convert``, ``convert_column``, ``cast``, ``strict_convert``
``comparison``     ``compare``, the SQL operators, ``comparison_plan``, ``list_plan``
``collations``     ``Collation``, ``CollationRegistry``, the resolution lattice
``sortkeys``       ``order_key``, ``identity_key``, ``reversed_key`` and their source templates
``arithmetic``     ``add`` ... ``shift_right``, ``negate``, ``concat``
``patterns``       ``like_matcher``, ``glob_matcher``, ``regexp_matcher``
``result_types``   ``arithmetic_type``, ``merge_types``, ``set_operation_type``
``json``           strict parsing, rendering, canonical form, order, paths
``temporal``       dates, times, durations, their arithmetic, modifiers and ``strftime``
=================  ===============================================================================

The rules are those of the chapter types-and-values.
"""
