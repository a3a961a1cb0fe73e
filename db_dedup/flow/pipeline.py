"""Steps 2 to 4 together: from a batch of rows to their digests, features and fingerprints.

Only this module computes fingerprints by a recipe: scan, worker and check all call it, so their bits are
equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from operator import is_not
from typing import Final

import numpy as np
from numpy.typing import NDArray

from db_dedup.errors import ConfigError
from db_dedup.flow.candidates.generators import (
    HASH_GENERATORS,
    HashGenerator,
    RowHashes,
    reduced,
    room_beside_prefixes,
)
from db_dedup.flow.candidates.short_texts import Prefixes, make_prefixes
from db_dedup.flow.candidates.sketches import Sketches, concatenate_sketches, empty_sketches, join_hashes
from db_dedup.flow.compare.measures import least_shared_with_floor
from db_dedup.flow.compare.rows import NO_PLACE, ComparedRows
from db_dedup.flow.features.characters import short_characters
from db_dedup.flow.features.counting import (
    NO_FEATURES,
    Features,
    TokenHasher,
    concatenate_features,
    count_features,
    hash_columns,
)
from db_dedup.flow.features.details import (
    CHARACTERS,
    LONG_GRAMS,
    PLACES,
    Details,
    concatenate_details,
    join_sections,
)
from db_dedup.flow.features.grams import hash_grams
from db_dedup.flow.features.long_grams import find_long_grams
from db_dedup.flow.features.places import place_names
from db_dedup.flow.fingerprints.simhash import fingerprint_rows
from db_dedup.flow.rows.digest import NO_FEATURES_DIGEST, digest_columns
from db_dedup.flow.text.compared import compared_rows
from db_dedup.flow.text.frames import without_frames
from db_dedup.flow.text.normalise import normalise_batch
from db_dedup.flow.text.segment import SEGMENTERS
from db_dedup.flow.text.stop_words import STOP_WORDS
from db_dedup.flow.threads import in_threads
from db_dedup.flow.words import HashTexts, word_hasher
from db_dedup.records.fingerprints import AnswerRow, StoredFingerprint
from db_dedup.records.forms import UNKNOWN_FORM
from db_dedup.records.frames import FrameList
from db_dedup.records.pages import cut_pages
from db_dedup.records.recipe import Recipe

_ROWS_WORTH_A_THREAD: Final = 100
_Item = tuple[Sequence[str], str | None, bytes | None]
"""(the texts of a row, the text of its `within` columns, its former digest)."""


@dataclass(frozen=True)
class FingerprintedRows:
    """What was computed of n rows.

    Attributes:
        fingerprints: uint64[n]; meaningless if `has_fingerprint` is False.
        has_fingerprint: bool[n]; False if the row has too little text to judge.
        digests: n digests of 16 bytes of the normalised columns.
        features: the features that the measure compares: character 3-grams, or those of the fingerprint.
        details: what the measure compares beside the features; empty if it compares no more.
        sketches: the sketches of the n rows; empty if no hash generator is switched on.
        is_known: bool[n]; True for a row whose digest is the known one. Such a row has neither fingerprint
            nor features here. With `compares_known` it is False, and a row with a known digest has features
            but no fingerprint.
        framed: bool[n]; True for a row of which a frame was left out.
        forms: int8[n], the numbers of the rows' forms; `UNKNOWN_FORM` where the normaliser knows no forms.
        compares_grams: the features are 3-grams of characters, not words.
    """

    fingerprints: NDArray[np.uint64]
    has_fingerprint: NDArray[np.bool_]
    digests: list[bytes]
    features: Features
    details: Details
    sketches: Sketches
    is_known: NDArray[np.bool_]
    framed: NDArray[np.bool_]
    forms: NDArray[np.int8]
    compares_grams: bool

    def take_stored(self, stored: Sequence[StoredFingerprint | AnswerRow | None]) -> None:
        """Copy the stored fingerprint into each row whose digest is unchanged.

        Args:
            stored: what is stored of each of the n rows; empty if nothing is.
        """
        for i, (before, digest) in enumerate(zip(stored, self.digests, strict=False)):
            if before is not None and before.fingerprint is not None and before.digest == digest:
                self.fingerprints[i], self.has_fingerprint[i] = before.fingerprint, True

    def form(self, row: int) -> int | None:
        """Return the number of a row's form; None where the normaliser knows no forms."""
        form = int(self.forms[row])
        return None if form == UNKNOWN_FORM else form

    def compared(self, within: Sequence[str | None]) -> ComparedRows:
        """Return the rows as the rule compares them.

        Args:
            within: for each row the text that it must share with a duplicate.
        """
        numbers: dict[str | None, int] = {}
        places = np.arange(len(self.digests))
        return ComparedRows(
            self.fingerprints,
            self.has_fingerprint,
            np.frombuffer(b"".join(self.digests), np.uint64).reshape(-1, 2),
            np.array([numbers.setdefault(text, len(numbers)) for text in within], np.int32),
            self.features,
            self.details,
            places,
            self.sketches,
            np.where(self.sketches.counts > 0, places, NO_PLACE),
        )


class Fingerprinter:
    """Computes digests, features, sketches and fingerprints by one recipe."""

    def __init__(self, recipe: Recipe, hasher: TokenHasher | None = None, threads: int = 1) -> None:
        """Load the segmenter, which takes a moment.

        Args:
            recipe: what to compute.
            hasher: hashes the tokens instead of the recipe's own hasher, for a caller that records them.
            threads: in which some hundred rows are fingerprinted.

        Raises:
            ConfigError: there is no such segmenter, or it cannot take the user words.
        """
        self._recipe = recipe
        # A segmenter of another package may not be made for threads.
        self._threads = threads if recipe.segmenter in SEGMENTERS else 1
        self._weights = [column.weight for column in recipe.columns]
        user_words = normalise_batch(recipe.user_words)
        try:
            self._hash_words = word_hasher(recipe.segmenter, user_words, stop_words_of(recipe), hasher)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._compares_grams = recipe.compared_by == "grams"
        self._prefixes = prefixes_of(recipe)

    def leave_out(self, frames: FrameList) -> None:
        """Leave these frames out from now on."""
        self._recipe = replace(self._recipe, frames=frames)
        self._prefixes = prefixes_of(self._recipe)

    def fingerprint(
        self,
        rows: Sequence[Sequence[str]],
        within: Sequence[str | None] | None = None,
        known: Sequence[bytes | None] | None = None,
        *,
        compares_known: bool = False,
    ) -> FingerprintedRows:
        """Run steps 2 to 4.

        Args:
            rows: for each row the texts of the watched columns in their order, "" for NULL.
            within: for each row the text that it must share with a duplicate.
            known: for each row its digest when it was last fingerprinted. A row that still has this digest is
                not segmented again, which would be most of the work.
            compares_known: compute features and sketches of known rows, too, so that they can be compared
                with others. They are segmented only if the measure compares words, and get no fingerprint.
        """
        count = len(rows)
        items = zip(rows, within or [None] * count, known or [None] * count, strict=True)
        threads = max(1, min(self._threads, count // _ROWS_WORTH_A_THREAD))
        pages = cut_pages(items, lambda item: sum(map(len, item[0])), max(1, -(-count // threads)))
        parts = list(in_threads(threads, self._fingerprint_page, pages, repeat(compares_known)))
        return joined_rows(parts) if parts else self._fingerprint_page((), compares_known)

    def _fingerprint_page(self, page: Sequence[_Item], compares_known: bool) -> FingerprintedRows:
        compared = compared_rows(self._recipe.columns, self._recipe.normaliser, [row for row, _, _ in page])
        within, known = [agree for _, agree, _ in page], [digest for _, _, digest in page]
        done = self.fingerprint_compared(compared.texts, within, known, compares_known=compares_known)
        return replace(done, forms=compared.forms)

    def fingerprint_compared(
        self,
        columns: list[list[str]],
        within: Sequence[str | None],
        known: Sequence[bytes | None],
        *,
        compares_known: bool = False,
    ) -> FingerprintedRows:
        """Run steps 3 and 4 on a page of rows whose texts are normalised already.

        Args:
            columns: column by column the texts of the rows, as `compared_columns` returns them.
            within: as for `fingerprint`.
            known: as for `fingerprint`.
            compares_known: as for `fingerprint`.
        """
        digests = digest_columns(columns, within)
        is_known = np.array(
            [digest == before for digest, before in zip(digests, known, strict=True)], np.bool_
        )
        entire, columns = columns, without_frames(columns, self._recipe.frames)
        framed = _differ(entire, columns)
        blanked = [_blanked(texts, is_known) for texts in columns]
        needs_words = compares_known and not self._compares_grams
        features = self._words(columns if needs_words else blanked)
        counts = features.counts
        has_features = is_known | (counts > 0)
        has_features |= self._entire_have_features(entire, framed & ~has_features)
        details = self._details(columns if compares_known else blanked)
        grams, sketches = self._grams(columns if compares_known else blanked, details)
        return FingerprintedRows(
            fingerprint_rows(features.starts, features.hashes, features.weights),
            counts >= self._recipe.min_features,
            [d if has else NO_FEATURES_DIGEST for d, has in zip(digests, has_features.tolist(), strict=True)],
            grams if self._compares_grams else features,
            details,
            sketches,
            is_known & (not compares_known),
            framed,
            np.full(len(digests), UNKNOWN_FORM, np.int8),
            self._compares_grams,
        )

    def _entire_have_features(
        self, columns: list[list[str]], looked_at: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return which of some rows have features if frames are not left out: the digest depends on these."""
        if not looked_at.any():
            return looked_at
        texts = [_blanked(column, ~looked_at) for column in columns]
        return self._words(texts).counts > 0

    def _details(self, columns: list[list[str]]) -> Details:
        count = len(columns[0])
        texts = self._texts(columns)
        sections = {}
        if self._recipe.short_threshold > 0:
            sections[CHARACTERS] = short_characters(self._recipe.columns, columns)
        if self._recipe.long_grams and self._compares_grams:
            sections[LONG_GRAMS] = find_long_grams(texts or [[""] * count])
        if self._recipe.names_places:
            sections[PLACES] = place_names(texts, count)
        return join_sections(count, sections)

    def _texts(self, columns: list[list[str]]) -> list[list[str]]:
        """Return the columns that are texts, not values."""
        kinds = [column.kind for column in self._recipe.columns]
        return [texts for texts, kind in zip(columns, kinds, strict=True) if kind == "text"]

    def _words(self, columns: list[list[str]]) -> Features:
        """Return the features of the fingerprint: words and values."""
        return count_features(
            self._hashed(columns, self._hash_words), self._weights, self._recipe.term_frequency
        )

    def _hashed(self, columns: list[list[str]], hash_texts: HashTexts) -> list[NDArray[np.uint64]]:
        return hash_columns(self._recipe.columns, columns, hash_texts)

    def _grams(self, columns: list[list[str]], details: Details) -> tuple[Features, Sketches]:
        """Return (character 3-grams, sketches) of the rows; empty ones if the recipe needs none."""
        count = len(columns[0])
        if not (self._compares_grams or self._recipe.sketches):
            return NO_FEATURES, empty_sketches(count)
        hashed = self._hashed(columns, hash_grams)
        if not self._recipe.sketches:
            return count_features(hashed, self._weights, "raw"), empty_sketches(count)
        grams, by_generator = self._generated(hashed, details, count)
        kinds: tuple[list[RowHashes], list[RowHashes]] = ([], [])
        for generator, hashes in by_generator.items():
            kinds[generator.one_is_enough].append(hashes)
        share, one_is_enough = kinds
        return grams, join_hashes(count, one_is_enough, share)

    def hashes_by_generator(self, columns: list[list[str]]) -> dict[HashGenerator, RowHashes]:
        """Return the hashes that each hash generator computes of rows whose texts are normalised already.

        Args:
            columns: column by column the texts of the rows, as `compared_columns` returns them.
        """
        columns = without_frames(columns, self._recipe.frames)
        hashed, details = self._hashed(columns, hash_grams), self._details(columns)
        return self._generated(hashed, details, len(columns[0]))[1]

    def _generated(
        self, hashed: list[NDArray[np.uint64]], details: Details, count: int
    ) -> tuple[Features, dict[HashGenerator, RowHashes]]:
        """Return (character 3-grams of each row, the hashes of each generator)."""
        columns = zip(hashed, self._recipe.columns, strict=True)
        texts = [stream for stream, column in columns if column.kind == "text"]
        # This comes before `count_features`, which sorts the 3-grams in place.
        found = {each: each.of_texts(texts, count) for each in HASH_GENERATORS if each.of_texts}
        grams = count_features(hashed, self._weights, "raw")
        prefixes = self._prefixes
        for each in HASH_GENERATORS:
            if each.of_grams:
                found[each] = each.of_grams(grams.starts, grams.hashes, prefixes is not None)
        if prefixes is not None:
            found = self._beside_prefixes(found, prefixes, grams, details)
        return grams, found

    def _beside_prefixes(
        self,
        found: dict[HashGenerator, RowHashes],
        prefixes: Prefixes,
        grams: Features,
        details: Details,
    ) -> dict[HashGenerator, RowHashes]:
        """Return the hashes with the prefixes, and of other generators no more than there is room for."""
        characters = details.section(CHARACTERS)
        is_short = np.diff(characters[0]) > 0
        result = {}
        for each in HASH_GENERATORS:
            if each.of_characters:
                result[each] = each.of_characters(*characters, grams.starts, grams.hashes, prefixes)
        room = room_beside_prefixes(is_short, grams.counts, next(iter(result.values())))
        for each, hashes in found.items():
            result[each] = reduced(hashes, room)
        return {each: result[each] for each in HASH_GENERATORS if each in result}


def joined_rows(parts: Sequence[FingerprintedRows]) -> FingerprintedRows:
    """Return the rows of all parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    return FingerprintedRows(
        np.concatenate([part.fingerprints for part in parts]),
        np.concatenate([part.has_fingerprint for part in parts]),
        [digest for part in parts for digest in part.digests],
        concatenate_features([part.features for part in parts]),
        concatenate_details([part.details for part in parts]),
        concatenate_sketches([part.sketches for part in parts]),
        np.concatenate([part.is_known for part in parts]),
        np.concatenate([part.framed for part in parts]),
        np.concatenate([part.forms for part in parts]),
        all(part.compares_grams for part in parts),
    )


def prefixes_of(recipe: Recipe) -> Prefixes | None:
    """Return the prefixes of a recipe; None if its measure may be one without a bound.

    A threshold is no part of the recipe. So the bound is that of all thresholds above 0.
    """
    if not recipe.has_prefixes:
        return None
    return make_prefixes(
        recipe.short_threshold, partial(least_shared_with_floor, 0.0), recipe.frames.common_grams
    )


def stop_words_of(recipe: Recipe) -> list[str]:
    """Return the stop words of a recipe, normalised."""
    return normalise_batch(STOP_WORDS if recipe.stop_words is None else recipe.stop_words)


def _blanked(texts: list[str], is_known: NDArray[np.bool_]) -> list[str]:
    """Return the texts, with "" in place of those of known rows."""
    return ["" if skip else text for text, skip in zip(texts, is_known.tolist(), strict=True)]


def _differ(entire: list[list[str]], columns: list[list[str]]) -> NDArray[np.bool_]:
    """Return bool[n]: whether a text of each row was replaced by another one."""
    differ = np.zeros(len(entire[0]), np.bool_)
    for before, after in zip(entire, columns, strict=True):
        differ |= np.fromiter(map(is_not, before, after), np.bool_, len(before))
    return differ
