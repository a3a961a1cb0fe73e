"""Choose the columns of an unknown table to compare, by a sample of their values, with the reasons."""

from db_dedup.proposal.choice import ColumnChoice as ColumnChoice
from db_dedup.proposal.choice import TableProposal as TableProposal
from db_dedup.proposal.choice import choose_by_type as choose_by_type
from db_dedup.proposal.choice import choose_columns as choose_columns
from db_dedup.proposal.order import choose_order as choose_order
from db_dedup.proposal.profile import SAMPLE_CHARACTERS as SAMPLE_CHARACTERS
from db_dedup.proposal.profile import ColumnProfile as ColumnProfile
from db_dedup.proposal.profile import profile_column as profile_column
from db_dedup.proposal.risks import has_too_little_text as has_too_little_text
from db_dedup.proposal.risks import risk_of_too_little_text as risk_of_too_little_text
from db_dedup.proposal.risks import risks_of_texts as risks_of_texts
