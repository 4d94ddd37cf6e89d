"""Names of terms that are shapes."""

from deciban.families import Text


def test_shapes_are_described():
    family = Text(words=(1, 2), characters=(3, 3), shapes=True)
    called = {term: family.display_name(term) for term in family.terms("Call 0871246 £1,500 www.a.org me@b.net 4")}
    assert called["0000000"] == "a number of 7 digits"
    assert called["0"] == "a number of 1 digit"
    assert called["0,000"] == "a number like 0,000"
    assert called["£ 0,000"] == "£ [a number like 0,000]"
    assert (called["url:"], called["url:www.a.org"]) == ("a link", "a link to www.a.org")
    assert (called["address:"], called["address:b.net"]) == ("a mail address", "a mail address at b.net")
    assert called["call 0000000"] == "call [a number of 7 digits]"
    assert all(name == term for term, name in called.items() if term.startswith("~") or term.isalpha())
    assert len(set(called.values())) == len(called)
    assert Text().display_name("0000") == "0000"  # a word of zeros
