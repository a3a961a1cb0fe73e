"""Makes the catalogues of messages from the code: `make messages`. Not part of the package."""
