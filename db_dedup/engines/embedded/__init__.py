"""The default engine. It works on one machine, and is the faster one below 100 million rows."""
