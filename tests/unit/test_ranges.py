"""Range expressions, there and back."""

import pytest

from ironburst.nodes.ranges import RangeError, compact, expand


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("dgx", ["dgx"]),
        ("dgx[01-03]", ["dgx01", "dgx02", "dgx03"]),
        ("dgx[9-11]", ["dgx9", "dgx10", "dgx11"]),
        ("r[1,3-4]n[1-2]", ["r1n1", "r1n2", "r3n1", "r3n2", "r4n1", "r4n2"]),
        ("http://10.0.0.[11-12]:80", ["http://10.0.0.11:80", "http://10.0.0.12:80"]),
    ],
)
def test_expand(text, names):
    assert expand(text) == names


@pytest.mark.parametrize(
    "text", ["a[2-1]", "a[", "a]", "a[x]", "a[1-]", "a[]", "a[01-100]", "a[1-99999]", "a[1-100]b[1-101]", "a[[1-2]]"]
)
def test_ranges_that_do_not_expand(text):
    with pytest.raises(RangeError, match=r".*\[?"):
        expand(text)


@pytest.mark.parametrize(
    ("names", "expression"),
    [
        (["dgx01", "dgx02", "dgx04"], "dgx[01-02,04]"),
        (["dgx01"], "dgx01"),
        (["p5-9", "p5-10"], "p5-[9,10]"),
        (["head", "dgx01", "dgx02"], "head,dgx[01-02]"),
        (["a1", "b1", "a2"], "a1,b1,a2"),
        (["head"], "head"),
    ],
)
def test_names_as_one_expression(names, expression):
    assert compact(names) == expression
