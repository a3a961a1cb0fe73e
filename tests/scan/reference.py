"""The answer by brute force: every pair of rows, Python sets, no index, no compiled kernel."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from db_dedup import DuplicatePair
from db_dedup.config import WatchedTable
from db_dedup.flow.candidates.common_grams import measure_common_grams
from db_dedup.flow.compare.measures import NO_SIMILARITY
from db_dedup.flow.features.details import CHARACTERS, LONG_GRAMS, PLACES
from db_dedup.flow.pipeline import Fingerprinter
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST
from db_dedup.flow.text.compared import compared_columns
from db_dedup.flow.text.frames import LEAST_ROWS, measure_frames
from db_dedup.records.frames import NO_FRAMES, FrameList
from db_dedup.records.kinds import PairKind
from db_dedup.sample import Petition
from tests.engines.reference import MatchRule, Row
from tests.flow.reference import meet


def brute_force(
    petitions: Sequence[Petition], watched: WatchedTable, frames: FrameList | None = None
) -> list[DuplicatePair]:
    """Pairs and copies of the petitions, ordered by keys: those that agree in `within`, are within the radius
    or have sketches that meet, and are similar enough. Their frames are measured, unless a list is given."""
    received = sorted(petitions, key=lambda p: (p.created_at, p.id))
    rows = [[getattr(p, c) or "" for c in watched.columns] for p in received]
    frames = frames_of(rows, watched) if frames is None else frames
    done = Fingerprinter(replace(watched.recipe, frames=frames)).fingerprint(rows)
    starts, hashes, weights = done.features.starts, done.features.hashes, done.features.weights
    compared = [
        Row(
            int(done.fingerprints[i]),
            0,
            0,
            dict(zip(hashes[a:b].tolist(), weights[a:b].tolist(), strict=True)),
            frozenset(done.sketches.of(i).tolist()),
            tuple(done.details.of(i, CHARACTERS).tolist()[1:]),
            frozenset(done.details.of(i, LONG_GRAMS).tolist()),
            frozenset(done.details.of(i, PLACES).tolist()),
        )
        for i, (a, b) in enumerate(pairwise(starts))
    ]
    within = [tuple(getattr(p, w.column) for w in watched.within) for p in received]
    first_of: dict[tuple[bytes, object], int] = {}
    pairs, heads = [], []
    for i, digest in enumerate(done.digests):
        first = first_of.setdefault((digest, within[i]), i)
        if digest != NO_FEATURES_DIGEST and first != i:
            pairs.append(
                DuplicatePair(str(received[first].id), str(received[i].id), 0, 1.0, "copy", None, False)
            )
        elif done.has_fingerprint[i]:
            heads.append(i)
    rule = watched.rule
    match_rule = MatchRule(
        rule.radius,
        None if rule.similarity == NO_SIMILARITY else rule.similarity,
        rule.threshold,
        watched.abridge_above,
        rule.short_threshold,
        rule.long_grams,
        watched.exclude_kinds,
    )
    for a, b in combinations(heads, 2):
        distance = (int(done.fingerprints[a]) ^ int(done.fingerprints[b])).bit_count()
        if within[a] != within[b] or (
            distance > rule.radius and not meet(compared[a].sketch, compared[b].sketch)
        ):
            continue
        is_confirmed, score = match_rule.compare(compared[a], compared[b])
        if is_confirmed:
            of_pair = PairKind.of(match_rule.kind(compared[a], compared[b]))
            keys = str(received[a].id), str(received[b].id)
            part = of_pair.part_of(*keys)
            pairs.append(DuplicatePair(*keys, distance, score, of_pair.kind, part, of_pair.other_place))
    return sorted(pairs, key=lambda p: (p.key_a, p.key_b))


def frames_of(rows: Sequence[Sequence[str]], watched: WatchedTable) -> FrameList:
    """The frames and the common 3-grams of all rows."""
    recipe = watched.recipe
    columns = compared_columns(recipe.columns, recipe.normaliser, rows)
    once = Counter(zip(*columns, strict=True))
    if len(once) < LEAST_ROWS:
        return NO_FRAMES
    columns = [list(texts) for texts in zip(*once, strict=True)]
    has_frames = watched.rule.frames
    frames = measure_frames(recipe.columns, columns, repeats=list(once.values())) if has_frames else NO_FRAMES
    if not recipe.has_prefixes:
        return frames
    return replace(frames, common_grams=measure_common_grams(recipe.columns, columns, frames))


def components(pairs: Sequence[DuplicatePair], received: Sequence[str]) -> dict[str, set[str]]:
    """Representative -> members of the groups that the pairs make; `received` has all keys in order."""
    group = {key: {key} for key in received}
    for pair in pairs:
        merged = group[pair.key_a] | group[pair.key_b]
        for key in merged:
            group[key] = merged
    place = {key: i for i, key in enumerate(received)}
    return {min(g, key=place.__getitem__): g for g in group.values() if len(g) > 1}
