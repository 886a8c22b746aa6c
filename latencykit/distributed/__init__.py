"""Ten thousand logs as one: read by processes of this machine, or by a Dask cluster where the logs are.

`read_many` takes paths, globs and URLs (whatever fsspec opens: ``s3://``, ``gcs://``, ``https://``) as one log. Nothing is
read until a question is asked; then every file, and every 32 MB of a large log, is a task, its counts are added up in a tree
on the workers, and only the sum travels. Sums are exact: anyone who makes them, in whatever order, and whichever worker dies on
the way, they are the same bit for bit.

A cluster of this machine's own cores (``pip install 'latencykit[cluster]'``)::

    import latencykit as lk
    from distributed import Client, LocalCluster

    if __name__ == "__main__":  # a LocalCluster starts processes, which read this file again
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as machines, Client(machines) as client:
            logs = lk.distributed.read_many("data/ctrlz-*.hlog", client)
            print(logs.histogram())                       # all files, all tags
            print(logs.between(5, 15).histogram().max)    # a slice, by the clock that all files share
            print(logs.resample("5s").by_interval([99]))  # from here on a HistogramLog in this process
            print(logs.files())                           # one row per file; under lenient=True with the errors

A real one is a `Client` of it, however it was made: ``Client("tcp://scheduler:8786")``; on Kubernetes the
``KubeCluster`` of dask-kubernetes, on SLURM, PBS or LSF the ``SLURMCluster`` and its kin of dask-jobqueue, on YARN dask-yarn, in
a cloud dask-cloudprovider or Coiled. The workers need latencykit, the fsspec package of the storage (s3fs, gcsfs, aiohttp) and a
way to the files; this process needs none of them but to expand a glob. Set ``MALLOC_TRIM_THRESHOLD_=134217728`` in the workers'
environment: Dask's own setting gives memory back to the system after every block, which costs a third of the speed.

On the command line the same is ``latencykit summary 's3://bucket/day/*.hlog' --merge --dask tcp://scheduler:8786``, or
``--dask local``; every command that takes FILES takes ``--dask``.
"""

from __future__ import annotations

from latencykit.distributed.logs import ClusterLog, read_many

__all__ = ["ClusterLog", "read_many"]
