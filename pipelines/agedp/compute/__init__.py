"""Where work runs: threads, processes or a Dask cluster. The only importers of Dask."""
