"""Reading ahead: order, errors, how much is under way, and that threads end."""

import threading

import pytest

from deciban.data.prefetch import parallel_map, prefetch


def ours():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("deciban")]


def test_everything_comes_once_and_in_order():
    for items in (0, 1, 2, 100):
        for workers in (1, 2, 8):
            assert list(parallel_map(lambda i: i * i, range(items), workers)) == [i * i for i in range(items)]
        assert list(prefetch(range(items))) == list(range(items))
        assert ours() == []


def test_order_holds_where_later_items_are_made_sooner():
    second = threading.Event()

    def make(i):
        assert second.wait(10) if i == 0 else True
        if i == 1:
            second.set()
        return i

    assert list(parallel_map(make, range(5), workers=2)) == [0, 1, 2, 3, 4]


def test_the_number_of_workers_is_looked_up_when_work_begins(monkeypatch):
    names = set()
    monkeypatch.setattr("deciban.data.prefetch.WORKERS", 1)
    list(parallel_map(lambda i: names.add(threading.current_thread().name), range(50)))
    assert len(names) == 1


def broken(last):
    yield from range(last)
    raise ValueError("the source broke")


def test_errors_of_the_source_are_raised():
    for last in (0, 1, 50):
        for items in (prefetch(broken(last)), parallel_map(str, broken(last), 2)):
            with pytest.raises(ValueError, match="the source broke"):
                list(items)
    assert ours() == []


def test_errors_of_the_work_are_raised_after_what_came_before():
    made = []
    with pytest.raises(ZeroDivisionError):
        made.extend(parallel_map(lambda i: 1 / (3 - i), range(10), 2))
    assert made == [1 / 3, 1 / 2, 1.0]
    assert ours() == []


@pytest.mark.parametrize("reading", [lambda: prefetch(range(1000)), lambda: parallel_map(str, range(1000), 2)])
@pytest.mark.parametrize("end", ["close", "forget"])
def test_threads_end_with_a_reading_that_is_given_up(reading, end):
    items = reading()
    next(items)
    assert ours()
    if end == "close":
        items.close()
    del items
    assert ours() == []


def test_only_a_few_items_are_under_way():
    taken = []
    source = (taken.append(i) or i for i in range(1000))
    items = parallel_map(lambda i: i, source, workers=2)
    for i in range(100):
        assert next(items) == i
        assert len(taken) <= i + 1 + 2 + 2  # those at work, the one that waits and the one being fetched
    items.close()
