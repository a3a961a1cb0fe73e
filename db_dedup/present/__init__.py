"""Words, differences, plots and HTML for people, shared by the command line and the pages of the service."""
