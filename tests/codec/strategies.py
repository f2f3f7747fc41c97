"""Values that find mistakes in key encodings: near boundaries, alike across types, full of escape bytes."""

from typing import Any

from hypothesis import strategies as st

BOUNDARIES = [0, 1, 2, 255, 256, 2**31, 2**52, 2**53, 2**62, 2**63, 2**64, 2**120, 2**1023, 2**1024]
BOUNDARIES += [10**30, 10**400]

near_boundaries = st.builds(
    lambda base, offset, sign: sign * (base + offset),
    st.sampled_from(BOUNDARIES),
    st.integers(-3, 3),
    st.sampled_from((1, -1)),
)
integers = st.one_of(st.integers(-10, 10), near_boundaries, st.integers(-(2**200), 2**200))

_special_reals = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 5e-324, -5e-324, 1e300, -1e300, 1e22]
reals = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(_special_reals),
    near_boundaries.filter(lambda n: abs(n) < 2**1023).map(float),
)
numbers = st.one_of(integers, reals, st.booleans())

texts = st.text(st.sampled_from("\0\1\2aAbBäÄßz \t\x7fé\uffff\U0001f600İ"), max_size=6)
blobs = st.binary(max_size=4) | st.lists(st.sampled_from(b"\0\1\2\xfe\xff"), max_size=5).map(bytes)

json_scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
documents: st.SearchStrategy[Any] = st.recursive(
    json_scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
containers = documents.filter(lambda value: isinstance(value, (list, dict)))

_hours = ["PT0S", "-PT1S", "PT1H", "PT60M", "PT3600S", "PT24H", "PT0.5S", "PT0.25S"]
_days = ["P1D", "P1M", "P31D", "P1Y", "P366D", "P1W", "P7D", "-P1Y", "P100000Y"]
timespans = st.sampled_from(_hours + _days)
