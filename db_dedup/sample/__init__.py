"""Made-up Chinese petitions with known duplicates, for the demo and the tests."""

from db_dedup.sample.generator import Petition, Sample, TruePair, generate_petitions

__all__ = ["Petition", "Sample", "TruePair", "generate_petitions"]
