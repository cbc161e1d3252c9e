"""`streamsparql serve`: one process that runs queries, an HTTP interface, and a page.

`service` is a session with the results of its queries, `app` the interface, `security` decides who
may do what, `metrics` writes numbers for Prometheus; `page` has the files of the page.
"""
