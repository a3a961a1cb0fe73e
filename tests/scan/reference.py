"""The answer by brute force: every pair of rows, Python sets, no index, no compiled kernel."""

from collections.abc import Sequence
from itertools import combinations, pairwise

from db_dedup import DuplicatePair
from db_dedup.config import WatchedTable
from db_dedup.engines.embedded.table_scan import MEASURE_OF
from db_dedup.engines.fingerprinter import Fingerprinter
from db_dedup.engines.row_texts import NOTHING_TO_SAY
from db_dedup.sample import Petition
from tests.flow.reference import meet, similarity


def brute_force(petitions: Sequence[Petition], watched: WatchedTable) -> list[DuplicatePair]:
    """Pairs and copies of the petitions, ordered by keys: those that agree in `within`, are within the radius
    or have sketches that meet, and are similar enough."""
    received = sorted(petitions, key=lambda p: (p.created_at, p.id))
    done = Fingerprinter(watched).fingerprint(
        [[getattr(p, c) or "" for c in watched.columns] for p in received]
    )
    starts, hashes, weights = done.features.starts, done.features.hashes, done.features.weights
    features = [
        dict(zip(hashes[a:b].tolist(), weights[a:b].tolist(), strict=True)) for a, b in pairwise(starts)
    ]
    sketches = [set(done.sketches.of(i).tolist()) for i in range(len(received))]
    within = [tuple(getattr(p, w.column) for w in watched.within) for p in received]
    first_of: dict[tuple[bytes, object], int] = {}
    pairs, heads = [], []
    for i, digest in enumerate(done.digests):
        first = first_of.setdefault((digest, within[i]), i)
        if digest != NOTHING_TO_SAY and first != i:
            pairs.append(DuplicatePair(str(received[first].id), str(received[i].id), 0, 1.0))
        elif done.has_fingerprint[i]:
            heads.append(i)
    rule = watched.rule
    measure = MEASURE_OF[rule.similarity]
    for a, b in combinations(heads, 2):
        distance = (int(done.fingerprints[a]) ^ int(done.fingerprints[b])).bit_count()
        if within[a] != within[b] or (distance > rule.radius and not meet(sketches[a], sketches[b])):
            continue
        score = None if measure is None else similarity(measure, features[a], features[b])
        if score is None or score >= rule.threshold:
            pairs.append(DuplicatePair(str(received[a].id), str(received[b].id), distance, score))
    return sorted(pairs, key=lambda p: (p.key_a, p.key_b))


def components(pairs: Sequence[DuplicatePair], received: Sequence[str]) -> dict[str, set[str]]:
    """Representative -> members of the groups that the pairs make; `received` has all keys in order."""
    group = {key: {key} for key in received}
    for pair in pairs:
        merged = group[pair.key_a] | group[pair.key_b]
        for key in merged:
            group[key] = merged
    place = {key: i for i, key in enumerate(received)}
    return {min(g, key=place.__getitem__): g for g in group.values() if len(g) > 1}
