"""Which columns of an unknown table should count, judged by a sample of their values, with the reasons."""

from db_dedup.proposal.choice import ColumnChoice as ColumnChoice
from db_dedup.proposal.choice import TableProposal as TableProposal
from db_dedup.proposal.choice import choose_by_type as choose_by_type
from db_dedup.proposal.choice import choose_columns as choose_columns
from db_dedup.proposal.profile import ColumnProfile as ColumnProfile
from db_dedup.proposal.profile import profile_column as profile_column
