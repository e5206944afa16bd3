import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.job_file import parse_job
from dataflow_ops.layers.dedup.compare import Candidates, estimate_bound, leader_walk


@given(st.lists(st.integers(0, 60), min_size=1, max_size=40), st.integers(1, 5), st.integers(1, 20))
def test_each_member_is_a_leader_matched_or_beyond_the_cap(points: list[int], cap: int, reach: int) -> None:
    """Members are points on a line, similar when near: a leader walk without texts."""

    def similar(a: int, b: int, equal: int, may_spare: bool) -> float:
        assert may_spare
        assert equal == -abs(points[a] - points[b])
        compared.append((a, b))
        return 1.0 - abs(points[a] - points[b]) / 100 if abs(points[a] - points[b]) <= reach else 0.0

    compared: list[tuple[int, int]] = []
    members = list(range(len(points)))
    edges, beyond = leader_walk(
        members,
        [-abs(point - points[0]) for point in points],
        lambda many, one: np.array([-abs(points[m] - points[one]) for m in many]),
        similar,
        cap,
    )
    matched = {b for _, b, _ in edges}
    leaders = [m for m in members if m not in matched]
    assert len(leaders) - beyond == min(cap, len(leaders))
    assert {a for a, _, _ in edges} <= set(leaders[:cap])
    assert all(a < b and abs(points[a] - points[b]) <= reach for a, b, _ in edges)
    assert len(compared) <= cap * len(members)
    # The likeliest leader comes first, so a match is the nearest leader there was.
    for a, b, _ in edges:
        before = [m for m in leaders[:cap] if m < b]
        assert abs(points[a] - points[b]) == min(abs(points[m] - points[b]) for m in before)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=40),
    st.integers(1, 5),
    st.integers(1, 20),
)
def test_who_is_spared_takes_no_leaders_place_and_costs_nobody_a_comparison(
    members: list[tuple[int, bool]], cap: int, reach: int
) -> None:
    """Points on a line; some have a better one in common with whatever leader they meet first."""
    points = [point for point, _ in members]
    compared: dict[int, set[int]] = {}
    spared: list[int] = []

    def similar(a: int, b: int, _: int, may_spare: bool) -> float:
        assert may_spare == (len(spared) < cap)
        if may_spare and members[b][1]:
            spared.append(b)
            return -1.0
        compared.setdefault(b, set()).add(a)
        return float(abs(points[a] - points[b]) <= reach)

    edges, beyond = leader_walk(
        list(range(len(points))),
        [-abs(point - points[0]) for point in points],
        lambda many, one: np.array([-abs(points[m] - points[one]) for m in many]),
        similar,
        cap,
    )
    matched = {b for _, b, _ in edges}
    alone = [m for m in range(len(points)) if m not in matched and m not in spared]
    leaders = {*alone[:cap], *spared}
    assert len(spared) <= cap
    assert beyond == max(0, len(alone) - cap), "no alarm where no leader's place was missing"
    assert {a for a, _, _ in edges} <= leaders
    for member in alone:
        assert compared.get(member, set()) == {leader for leader in leaders if leader < member}


def test_bound_follows_the_bands() -> None:
    def bound(**minhash: int) -> int:
        return estimate_bound(parse_job({"dataset": {"id": "t"}, "dedup": {"minhash": minhash}}))

    assert bound() == 17
    assert bound(band=25, rows_per_band=5) < 5, "bands that find less similar pairs refuse less"
    assert bound(signature_size=256, band=32, rows_per_band=8) > 2 * 17


def test_signatures_of_two_shingle_sizes_say_nothing() -> None:
    signatures = np.array([[1] * 16, [2] * 16, [2] * 16], np.uint32)
    texts = ["abcdefghij", "abcdefghij", "abcdefghij"]
    candidates = Candidates(signatures, np.array([5, 13, 5]), texts.__getitem__, 0.8, 4)
    assert candidates.similarity(0, 1, 0) == 1.0
    assert candidates.similarity(0, 2, 0) == 0.0


@given(st.lists(st.integers(0, 60), min_size=2, max_size=24, unique=True), st.integers(1, 20), st.data())
def test_what_need_not_be_compared_leaves_all_together_that_belongs_together(
    points: list[int], reach: int, data: st.DataObject
) -> None:
    """Buckets of points on a line, best first; a pair joined by a better point is spared."""
    n = len(points)
    member = st.lists(st.integers(0, n - 1), min_size=2, max_size=8, unique=True)
    buckets = sorted(sorted(bucket) for bucket in data.draw(st.lists(member, min_size=1, max_size=8)))
    better: dict[int, set[int]] = {}
    spared: list[tuple[int, int]] = []

    def near(a: int, b: int) -> float:
        return float(abs(points[a] - points[b]) <= reach)

    def sparing(a: int, b: int, _: int, may_spare: bool) -> float:
        if may_spare and b not in better.get(a, set()) and better.get(a, set()) & better.get(b, set()):
            spared.append((a, b))
            return -1.0
        if near(a, b):
            better.setdefault(b, set()).add(a)
        return near(a, b)

    joined = []
    for similar in (lambda a, b, _, __: near(a, b), sparing):
        edges: list[tuple[int, int]] = []
        for bucket in buckets:
            likely = lambda many, one: np.array([-abs(points[m] - points[one]) for m in many])  # noqa: E731
            found, _ = leader_walk(bucket, [0] * len(bucket), likely, similar, n)
            edges += [(a, b) for a, b, _ in found]
        joined.append(_components(n, edges))
    plain, sparse = joined
    assert all(sparse[a] == sparse[b] for a, b in spared)
    for a in range(n):
        for b in range(n):
            assert plain[a] != plain[b] or sparse[a] == sparse[b], "what was together no longer is"


def _components(n: int, edges: list[tuple[int, int]]) -> list[int]:
    of = list(range(n))
    for a, b in edges:
        of = [of[a] if label == of[b] else label for label in of]
    return of
