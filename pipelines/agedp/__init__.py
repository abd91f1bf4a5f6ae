"""What happens: the stages from input files to a release folder, and the packages that several stages share.

* `pipeline`: the whole run as one function, and the estimation of a model as another.
* `stages`: ingest, aggregate, plan, release, publish, report; `stage_values`: what one hands to the next.
* `store`: readings as Parquet by month; `calibration`: quantize, estimate, bound; `budget` and `planning`: what a
  promise permits on a day and later; `release_folder`: what recipients get, and its verification; `reports`: pages.
* `setup`, `one_off`, `demo`: first steps; `compute`: threads, processes, Dask; `local_files`: atomic files and locks.
"""
