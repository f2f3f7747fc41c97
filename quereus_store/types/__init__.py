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

What statements need is exported here; ``json`` and ``temporal`` are used by their own names.  The rules are
those of the chapter types-and-values.
"""

from quereus_store.types.arithmetic import (
    ArithmeticMode,
    add,
    arithmetic_plan,
    arithmetic_template,
    bit_and,
    bit_or,
    concat,
    divide,
    invert_bits,
    multiply,
    negate,
    positive,
    remainder,
    shift_left,
    shift_right,
    subtract,
)
from quereus_store.types.collations import (
    BINARY,
    NOCASE,
    RTRIM,
    Collation,
    CollationContribution,
    CollationRank,
    CollationRegistry,
    carry_contributions,
    honours_collation,
    merge_contributions,
    resolve_comparison_collation,
    resolve_list_collation,
)
from quereus_store.types.comparison import (
    ComparisonMode,
    ComparisonPlan,
    ListPlan,
    compare,
    compare_operands,
    comparison_plan,
    comparison_template,
    equal,
    greater,
    greater_equal,
    is_distinct,
    less,
    less_equal,
    list_plan,
    not_equal,
)
from quereus_store.types.conversion import (
    ConversionFailure,
    cast,
    caster,
    column_is_clean,
    convert,
    convert_column,
    converted,
    fits,
    retype_column,
    strict_convert,
)
from quereus_store.types.logical import (
    ANY,
    BLOB,
    BOOLEAN,
    BUILT_IN_TYPES,
    DATE,
    DATETIME,
    INTEGER,
    JSON,
    NULL,
    NUMERIC,
    REAL,
    TEXT,
    TIME,
    TIMESPAN,
    TIMESTAMP,
    LogicalType,
    PhysicalType,
    TypeRegistry,
    physical_type_of,
    type_from_name,
    type_of_value,
)
from quereus_store.types.patterns import (
    glob_matcher,
    like_matcher,
    like_prefix,
    like_template,
    regexp_matcher,
)
from quereus_store.types.result_types import (
    arithmetic_is_nullable,
    arithmetic_type,
    cast_is_nullable,
    merge_types,
    set_operation_type,
    unary_type,
)
from quereus_store.types.sortkeys import (
    KeyRecipe,
    Reversed,
    identity_key,
    order_key,
    reversed_key,
)
from quereus_store.types.templates import (
    Template,
    global_name,
)
from quereus_store.types.values import (
    Value,
    storage_rank,
    to_text,
    truth,
    typeof,
    value_kind,
)

__all__ = [
    "ANY",
    "BINARY",
    "BLOB",
    "BOOLEAN",
    "BUILT_IN_TYPES",
    "DATE",
    "DATETIME",
    "INTEGER",
    "JSON",
    "NOCASE",
    "NULL",
    "NUMERIC",
    "REAL",
    "RTRIM",
    "TEXT",
    "TIME",
    "TIMESPAN",
    "TIMESTAMP",
    "ArithmeticMode",
    "Collation",
    "CollationContribution",
    "CollationRank",
    "CollationRegistry",
    "ComparisonMode",
    "ComparisonPlan",
    "ConversionFailure",
    "KeyRecipe",
    "ListPlan",
    "LogicalType",
    "PhysicalType",
    "Reversed",
    "Template",
    "TypeRegistry",
    "Value",
    "add",
    "arithmetic_is_nullable",
    "arithmetic_plan",
    "arithmetic_template",
    "arithmetic_type",
    "bit_and",
    "bit_or",
    "carry_contributions",
    "cast",
    "cast_is_nullable",
    "caster",
    "column_is_clean",
    "compare",
    "compare_operands",
    "comparison_plan",
    "comparison_template",
    "concat",
    "convert",
    "convert_column",
    "converted",
    "divide",
    "equal",
    "fits",
    "glob_matcher",
    "global_name",
    "greater",
    "greater_equal",
    "honours_collation",
    "identity_key",
    "invert_bits",
    "is_distinct",
    "less",
    "less_equal",
    "like_matcher",
    "like_prefix",
    "like_template",
    "list_plan",
    "merge_contributions",
    "merge_types",
    "multiply",
    "negate",
    "not_equal",
    "order_key",
    "physical_type_of",
    "positive",
    "regexp_matcher",
    "remainder",
    "resolve_comparison_collation",
    "resolve_list_collation",
    "retype_column",
    "reversed_key",
    "set_operation_type",
    "shift_left",
    "shift_right",
    "storage_rank",
    "strict_convert",
    "subtract",
    "to_text",
    "truth",
    "type_from_name",
    "type_of_value",
    "typeof",
    "unary_type",
    "value_kind",
]
