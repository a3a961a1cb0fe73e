"""Scans on a cluster: Apache Spark reads the table in parts and runs the steps of the flow on its machines.

| module | runs | does |
|---|---|---|
| `engine` | on the driver | checks what must be there, and opens a session |
| `session` | on the driver | the session of Spark |
| `failures` | on the driver | turns errors of Spark into errors of db_dedup |
| `table_scan` | on the driver | the steps of a scan, one after the other |
| `reading` | on the driver | the rows of the user's table, read by JDBC in parts |
| `columns` | on both | rows and their features as columns of Arrow |
| `pages` | on executors | fingerprints of a page of rows |
| `keys` | on executors | the keys by which rows are shuffled, and candidate pairs of rows with equal keys |
| `comparing` | on executors | confirms candidate pairs, and matches groups |
| `answer` | on the driver | the answer, as a scan writes it |
"""
