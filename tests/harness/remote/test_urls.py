"""URLs of stores: what is one, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from marginbench.harness.errors import UserError
from marginbench.harness.results.remote.urls import StoreUrl, is_url, local_folder


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s3://bucket/a/b", "s3://bucket/a/b"),
        ("s3://bucket/a//b/", "s3://bucket/a/b"),
        ("S3://bucket", "s3://bucket"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("az://container/a", "az://container/a"),
        ("file:///srv/a/", "file:///srv/a"),
        # What a Path makes of it.
        (Path("s3://bucket/a"), "s3://bucket/a"),
        (Path("file:///srv/a"), "file:///srv/a"),
    ],
)
def test_a_url_is_read(text: str | Path, found: str) -> None:
    assert is_url(text)
    assert str(StoreUrl.parsed(text)) == found


@pytest.mark.parametrize("text", ["results/a", "C:/results", "C:\\results", "a:b", "/srv/a", "."])
def test_a_path_is_no_url(text: str) -> None:
    assert not is_url(text)
    assert local_folder(text) == Path(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ftp://host/a", "ftp://host/a: no kind of store is known for this URL; there are s3://"),
        ("s3:///a", "s3:///a: names no bucket; write s3://BUCKET/PATH"),
        ("s3://KEY:secret@bucket/a", "s3://\\.\\.\\.@bucket/a: a URL must hold no password"),
        ("s3:/KEY:secret@bucket/a", "s3:/\\.\\.\\.@bucket/a: a URL must hold no password"),
        ("az://c/a?sv=1&sig=secret", "az://c/a\\?\\.\\.\\.: a URL must hold no password"),
        ("https://me:secret@host/a", "https://\\.\\.\\.@host/a: no kind of store is known"),
        ("file://host/a", "file://host/a: write file:///, then the path"),
    ],
)
def test_a_url_that_is_none_is_named(text: str, message: str) -> None:
    assert is_url(text)
    with pytest.raises(UserError, match=f"^{message}") as told:
        local_folder(text)
    assert "secret" not in str(told.value)
