"""Thousands of files summed by processes of this machine, or by a Dask cluster (``--dask``).

Every group of small files, and every 32 MB of a large log, is a task that adds its counts up, and
only sums travel. Sums are exact: they are equal bit for bit in whatever order and by whichever
worker they are made.

From Python, `latencykit.read_all` takes an executor, such as that of a cluster of this machine's
own cores (``pip install distributed``)::

    import latencykit as lk
    from distributed import Client, LocalCluster

    if __name__ == "__main__":  # a LocalCluster starts processes, which import this file again
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as machines,
            Client(machines) as client,
        ):
            logs = lk.read_all(["data/ctrlz-scheduled.hlog"], executor=client.get_executor())
            print(lk.merge(logs).histogram())

For a real cluster take that of its `Client`. On the command line ``--dask tcp://scheduler:8786``
uses a cluster that dask-kubernetes, dask-jobqueue, dask-yarn, dask-cloudprovider or Coiled started.
The workers need latencykit, the fsspec package of the storage (s3fs, gcsfs, aiohttp) and access to
the files; this process needs none of them except to expand a glob. Set
``MALLOC_TRIM_THRESHOLD_=134217728`` in the workers' environment: Dask's own setting gives memory
back to the system after every block, which costs a third of the speed.

A worker that is killed changes nothing: its tasks are repeated elsewhere, at most twice. A
scheduler that ends, workers that run out of memory, have no latencykit or do not reach a file end
the work with one error that says which. Dask waits for workers as long as there are none.
"""
