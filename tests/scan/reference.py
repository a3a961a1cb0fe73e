"""The answer by brute force: every pair of rows, Python sets, no index, no compiled kernel."""

from collections.abc import Sequence
from itertools import combinations

from db_dedup import DuplicatePair
from db_dedup.config import WatchedTable
from db_dedup.engines.fingerprinter import NOTHING_TO_SAY, Fingerprinter
from db_dedup.sample import Petition


def brute_force(petitions: Sequence[Petition], watched: WatchedTable) -> list[DuplicatePair]:
    """Pairs and copies of the petitions, ordered by keys; only word Jaccard and no similarity."""
    received = sorted(petitions, key=lambda p: (p.created_at, p.id))
    done = Fingerprinter(watched).fingerprint(
        [[getattr(p, c) or "" for c in watched.columns] for p in received]
    )
    starts, hashes = done.features.starts, done.features.hashes
    words = [set(hashes[starts[i] : starts[i + 1]].tolist()) for i in range(len(received))]
    first_of: dict[bytes, int] = {}
    pairs, heads = [], []
    for i, digest in enumerate(done.digests):
        if digest != NOTHING_TO_SAY and digest in first_of:
            pairs.append(DuplicatePair(str(received[first_of[digest]].id), str(received[i].id), 0, 1.0))
            continue
        first_of[digest] = i
        if done.has_fingerprint[i]:
            heads.append(i)
    rule = watched.rule
    for a, b in combinations(heads, 2):
        distance = (int(done.fingerprints[a]) ^ int(done.fingerprints[b])).bit_count()
        if distance > rule.radius:
            continue
        similarity = None
        if rule.similarity == "word_jaccard":
            similarity = len(words[a] & words[b]) / len(words[a] | words[b])
            if similarity < rule.threshold:
                continue
        pairs.append(DuplicatePair(str(received[a].id), str(received[b].id), distance, similarity))
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
