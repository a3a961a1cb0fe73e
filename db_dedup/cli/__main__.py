"""`python -m db_dedup.cli`."""

from db_dedup.cli import main

if __name__ == "__main__":
    main()
