"""URLs of object storage: each failure is reported in one line."""

from __future__ import annotations

import builtins
import sys

import pytest

import latencykit as lk

fsspec = pytest.importorskip("fsspec")


class NoCredentialsError(Exception):
    """As botocore names it."""


class Storage(fsspec.AbstractFileSystem):
    """A storage that raises the given error."""

    protocol = "vault"
    error: Exception = NoCredentialsError("Unable to locate credentials")
    cachable = False

    def info(self, path, **kwargs):
        raise self.error

    def _open(self, path, *args, **kwargs):
        raise self.error


@pytest.fixture
def storage(monkeypatch):
    fsspec.register_implementation("vault", Storage, clobber=True)
    return lambda error: monkeypatch.setattr(Storage, "error", error)


def test_a_login_that_is_missing(storage):
    storage(NoCredentialsError("Unable to locate credentials"))
    with pytest.raises(
        lk.InputError, match=r"vault://a/x.hlog: no credentials were found; "
    ) as refused:
        lk.read("vault://a/x.hlog")
    assert "AWS_PROFILE" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_access_that_is_refused(storage):
    storage(PermissionError("Forbidden"))
    with pytest.raises(lk.InputError, match=r"vault://a/x.hlog: the storage refuses access"):
        lk.read("vault://a/x.hlog")


def test_a_client_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(lk.LatencyKitError, match=r"^s3://bucket/x.hlog: .*s3fs"):
        lk.read("s3://bucket/x.hlog")


def test_fsspec_that_is_not_installed(monkeypatch):
    import_it = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("fsspec"):
            raise ImportError(name)
        return import_it(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(lk.MissingPackageError, match="fsspec"):
        lk.read("s3://bucket/x.hlog")
