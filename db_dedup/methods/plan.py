"""Which combinations of segmenter, features and method a comparison tries, in the steps of P4 and P5."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isfinite
from typing import Any, Final, get_args

from db_dedup.errors import InvalidArgumentError, UnknownNameError
from db_dedup.methods.registry import FEATURES, METHODS
from db_dedup.methods.segmenters import SEGMENTERS
from db_dedup.records.comparison import Combination, Step
from db_dedup.translation import Phrase

STEPS: Final[tuple[Step, ...]] = get_args(Step)

DEFAULT_SEGMENTERS: Final = (
    *(name for name, entry in SEGMENTERS.items() if entry.papers),
    "words",
    "chars:2",
    "chars:3",
)
"""Those of the papers, and those of the product for scripts with spaces and for character n-grams."""

DEFAULT_FEATURES: Final = tuple(name for name in FEATURES if name not in ("shingles:4", "shingles:5"))

DEFAULT_METHODS: Final = tuple(METHODS)

_FIRST_METHOD: Final = "simhash"


@dataclass(frozen=True)
class ComparisonPlan:
    """What to compare.

    Attributes:
        segmenters: names in `SEGMENTERS`. The first one is used while other things are varied.
        features: names in `FEATURES`, likewise.
        methods: names in `METHODS`; `simhash` is the one that is used while other things are varied, or else
            the first.
        thresholds: name of a method -> its thresholds; for the others those of the registry.
        steps: the steps to do.
    """

    segmenters: Sequence[str] = DEFAULT_SEGMENTERS
    features: Sequence[str] = DEFAULT_FEATURES
    methods: Sequence[str] = DEFAULT_METHODS
    thresholds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    steps: Sequence[str] = STEPS

    def __post_init__(self) -> None:
        """Check the names.

        Raises:
            UnknownNameError: there is no segmenter, method, ... of this name.
            InvalidArgumentError: a list is empty, or a threshold cannot be one of its method.
        """
        _check(Phrase("segmenter"), self.segmenters, SEGMENTERS)
        _check(Phrase("features"), self.features, FEATURES)
        _check(Phrase("method"), self.methods, METHODS)
        _check(Phrase("step"), self.steps, STEPS)
        for name, thresholds in self.thresholds.items():
            _check_thresholds(name, thresholds, self.methods)

    def thresholds_of(self, method: str) -> tuple[float, ...]:
        """Return the thresholds to try of a method, the strictest first."""
        entry = METHODS[method]
        given = set(self.thresholds.get(method, entry.thresholds))
        return tuple(sorted(given, reverse=entry.higher_is_alike))

    @property
    def first(self) -> Combination:
        """What is used while others are varied."""
        return self._simplest(*self._first())

    def combinations(self) -> dict[Combination, Step]:
        """Return each combination once, with the first step in which it occurs.

        A combination that must give the same result as an earlier one is left out: another segmenter for
        features that use no words, and other weights of the same words for a method without weights.
        """
        found: dict[Combination, Step] = {}
        for step in STEPS:
            if step in self.steps:
                for names in self._of_step(step):
                    found.setdefault(self._simplest(*names), step)
        return found

    def _of_step(self, step: Step) -> Iterable[tuple[str, str, str]]:
        lists = (self.segmenters, self.features, self.methods)
        varied = {"alone": 1, "cross": 2, "together": 3}[step]
        # Which of the three are varied: (True, False, False) means segmenters alone.
        for are_varied in sorted(product((True, False), repeat=3), reverse=True):
            if sum(are_varied) == varied:
                choices = zip(are_varied, lists, self._first(), strict=True)
                yield from product(*(names if is_varied else [one] for is_varied, names, one in choices))

    def _first(self) -> tuple[str, str, str]:
        method = _FIRST_METHOD if _FIRST_METHOD in self.methods else self.methods[0]
        return self.segmenters[0], self.features[0], method

    def _simplest(self, segmenter: str, features: str, method: str) -> Combination:
        if FEATURES[features].is_words and not METHODS[method].uses_weights:
            features = next(name for name in self.features if FEATURES[name].is_words)
        return Combination(segmenter if FEATURES[features].uses_tokens else None, features, method)


def _check(kind: Phrase, names: Sequence[str], known: Iterable[str]) -> None:
    if isinstance(names, str) or not names:
        raise InvalidArgumentError("{kind}: a list of at least one name is needed", kind=kind)
    known = list(known)
    for name in names:
        if name not in known:
            raise UnknownNameError(kind, name, known, most=len(known))


def _check_thresholds(name: str, thresholds: Any, methods: Sequence[str]) -> None:
    if name not in methods:
        raise UnknownNameError(Phrase("method with a threshold"), name, methods, most=len(methods))
    if not thresholds:
        raise InvalidArgumentError("{name}: at least one threshold is needed", name=name)
    is_share = METHODS[name].higher_is_alike
    for value in thresholds:
        if not isinstance(value, int | float) or not isfinite(value) or value < 0 or (is_share and value > 1):
            raise InvalidArgumentError(
                "{value} is no threshold of {name}: it is {form}",
                value=repr(value)[:40],
                name=name,
                form=Phrase("a similarity, from 0 to 1")
                if is_share
                else Phrase("a distance in bits, 0 or more"),
            )
