"""Thousands of logs as one: read by processes of this machine, or by a Dask cluster.

`read_all` is `latencykit.read_all` with an executor of `concurrent.futures`. `read_many` takes
paths, globs and URLs (anything fsspec opens: ``s3://``, ``gcs://``, ``https://``) as one log.
Nothing is read until a question is asked; then every group of small files, and every 32 MB of a
large log, is a task that adds its counts up, and only sums travel. Sums are exact: they are equal
bit for bit in whatever order and by whichever worker they are made.

A cluster of this machine's own cores (``pip install distributed``)::

    import latencykit as lk
    from distributed import Client, LocalCluster

    if __name__ == "__main__":  # a LocalCluster starts processes, which import this file again
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as machines,
            Client(machines) as client,
        ):
            logs = lk.distributed.read_many("data/ctrlz-*.hlog", client)
            print(logs.histogram())                       # all files, all tags
            print(logs.between(5, 15).histogram().max)    # a slice, by the clock of all files
            print(logs.resample("5s").by_interval([99]))  # now a HistogramLog in this process
            print(logs.files())                           # one row per file

For a real cluster pass its `Client`: ``Client("tcp://scheduler:8786")``; on Kubernetes the
``KubeCluster`` of dask-kubernetes, on SLURM, PBS or LSF the ``SLURMCluster`` and its relatives of
dask-jobqueue, on YARN dask-yarn, in a cloud dask-cloudprovider or Coiled. The workers need
latencykit, the fsspec package of the storage (s3fs, gcsfs, aiohttp) and access to the files; this
process needs none of them except to expand a glob. Set ``MALLOC_TRIM_THRESHOLD_=134217728`` in the
workers' environment: Dask's own setting gives memory back to the system after every block, which
costs a third of the speed.

A worker that is killed changes nothing: its tasks are repeated elsewhere, at most twice. A
scheduler that is lost or silent (``--limit answer``), no workers or only silent ones (``--limit
fetch``), workers that run out of memory, have another latencykit or do not reach a file end the
work with one error that says which.

On the command line the same is ``latencykit summary 's3://bucket/day/*.hlog' --merge --dask
tcp://scheduler:8786``, or ``--dask local``; every command that takes FILES takes ``--dask``.
"""

from __future__ import annotations

from latencykit.distributed.logs import ClusterLog, read_all, read_many

__all__ = ["ClusterLog", "read_all", "read_many"]
