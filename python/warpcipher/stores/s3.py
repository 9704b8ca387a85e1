# SPDX-License-Identifier: Apache-2.0
"""Buckets of S3, and of what speaks its protocol. obstore moves the bytes; boto3 finds credentials,
region and endpoint, and asks for what obstore has not: names of odd shapes (`_ODD`), parts that
the server copies, and parts that become an object only if none is there."""

from __future__ import annotations

import contextlib
import datetime
import errno
import os
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from xml.etree import ElementTree

from . import cloud
from .store import IN_FLIGHT, ObjectInfo, Replacement, Store, changed, exists, failure

if TYPE_CHECKING:
    from typing_extensions import Buffer

LEAST_PART = 5 << 20
"""Of a part that others follow."""
COPIED_PART = 512 << 20
"""Of one that the server copies; it allows 5 GiB, and copies several at a time sooner."""
COPIES = 8
_KEPT = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Metadata",
    "SSEKMSKeyId",
    "ServerSideEncryption",
    "StorageClass",
)
"""Of an object that another takes the place of, as it is asked for and set."""
_ODD = re.compile(r"(?:^|/)\.{0,2}(?:/|\Z)|[\x00-\x1f\x7f]")
"""Empty parts, parts . and .., and control characters."""
_REFRESH = datetime.timedelta(minutes=5)


class S3Store(cloud.CloudStore):
    """A bucket of S3."""

    def __init__(self, scheme: str, bucket: str) -> None:
        self._boto3, self._botocore = cloud.load("boto3", scheme), cloud.load("botocore", scheme)
        super().__init__(scheme, bucket)

    def _open(self, scheme: str, bucket: str) -> Any:
        session = self._boto3.session.Session()
        config = cloud.load("botocore.config", scheme).Config(
            retries={"mode": "standard", "total_max_attempts": cloud.RETRIES + 1},
            max_pool_connections=2 * COPIES,
            connect_timeout=min(10.0, cloud.TIMEOUT),
            read_timeout=cloud.TIMEOUT,
        )
        public = os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true", "yes")
        if public:
            config.signature_version = self._botocore.UNSIGNED
        self.client = session.client("s3", config=config)
        self.client.meta.events.register("before-parse.s3.ListObjectsV2", _take_contents)
        self.bucket = bucket
        credentials: Any = None if public else session.get_credentials()
        if credentials is None and not public:
            raise PermissionError(
                errno.EACCES,
                "no credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role "
                "gives them; AWS_SKIP_SIGNATURE=true reads public buckets",
                f"s3://{bucket}",
            )

        def provide() -> dict[str, Any]:
            now = datetime.datetime.now(datetime.timezone.utc)
            frozen = credentials.get_frozen_credentials()
            return {
                "access_key_id": frozen.access_key,
                "secret_access_key": frozen.secret_key,
                "token": frozen.token,
                "expires_at": now + _REFRESH,
            }

        region = self.client.meta.region_name
        return cloud.load("obstore.store", scheme).S3Store(
            bucket,
            endpoint=self.client.meta.endpoint_url,
            region="us-east-1" if region in (None, "aws-global") else region,
            virtual_hosted_style_request=False,
            credential_provider=None if public else provide,
            skip_signature=public,
            **self._common,
        )

    def translated(self, path: str, error: Exception) -> Exception:
        """As the base class, of boto3's errors too."""
        errors = self._botocore.exceptions
        if isinstance(error, errors.ClientError):
            code = error.response.get("Error", {}).get("Code", "")
            return failure(self.url(path), code, code)
        if isinstance(error, errors.BotoCoreError):
            return failure(self.url(path), "", type(error).__name__)
        if isinstance(error, ElementTree.ParseError):
            return failure(self.url(path), "", "an answer that is not XML")
        return super().translated(path, error)

    def listing(self, folder: str) -> Iterator[ObjectInfo]:
        pages = self.client.get_paginator("list_objects_v2")
        with self.told(folder):
            for page in pages.paginate(Bucket=self.bucket, Prefix=folder):
                for found in page["Contents"]:
                    if found["Size"] != "0" or not found["Key"].endswith("/"):
                        moment = int(_seconds(found["LastModified"]) * 1_000_000) * 1000
                        yield ObjectInfo(
                            self.url(found["Key"]), int(found["Size"]), moment, found["ETag"]
                        )

    def stat(self, path: str) -> ObjectInfo:
        if not _is_odd(path):
            return super().stat(path)
        with self.told(path):
            found = self.client.head_object(Bucket=self.bucket, Key=path)
        moment = int(found["LastModified"].timestamp() * 1_000_000) * 1000
        return ObjectInfo(self.url(path), found["ContentLength"], moment, found["ETag"])

    def read(self, path: str, offset: int, length: int, info: ObjectInfo) -> Buffer:
        if not _is_odd(path):
            return super().read(path, offset, length, info)
        asked = {"Range": f"bytes={offset}-{offset + length - 1}"}
        if info.version:
            asked["IfMatch"] = info.version
        try:
            with self.told(path):
                answer = self.client.get_object(Bucket=self.bucket, Key=path, **asked)
                data: bytes = answer["Body"].read()
        except FileNotFoundError:
            raise changed(info.url) from None
        if len(data) != length:
            raise changed(info.url)
        return data

    def write_short(self, path: str, data: Buffer, *, replace: bool) -> None:
        if not _is_odd(path):
            super().write_short(path, data, replace=replace)
            return
        condition = {} if replace else {"IfNoneMatch": "*"}
        try:
            with self.told(path):
                body = bytes(data)
                self.client.put_object(Bucket=self.bucket, Key=path, Body=body, **condition)
        except OSError as error:
            if error.errno == errno.ESTALE:
                raise exists(self.url(path)) from None
            raise

    def writer(self, path: str, part: int, *, replace: bool) -> Any:
        if not replace:
            return Parts(self, path, {"IfNoneMatch": "*"}, part=part)
        if _is_odd(path):
            return Parts(self, path, {}, part=part)
        return super().writer(path, part, replace=True)

    def remove(self, path: str) -> None:
        with self.told(path):
            self.client.delete_object(Bucket=self.bucket, Key=path)

    def replace_part(self, path: str, change: Replacement, other: Store) -> bool:
        begin, _, data, target, _, replaces = change
        if not isinstance(other, S3Store) or other.client.meta.endpoint_url != (
            self.client.meta.endpoint_url
        ):
            return False
        with self.told(path):
            found = self.client.head_object(Bucket=self.bucket, Key=path)
            size, version = found["ContentLength"], found["ETag"]
            info = ObjectInfo(self.url(path), size, 0, version)
            end = change.end_in(info)
            if 0 < (short := begin % COPIED_PART) < LEAST_PART:
                begin -= short
                data = bytes(self.read(path, begin, short, info)) + data
            copied = min(size, end + max(0, LEAST_PART - len(data)))
            if copied > end:
                data += bytes(self.read(path, end, copied - end, info))
            if other.url(target) == self.url(path):
                replaces = version
            # Without quotation marks: Ceph compares the text as it is, and others take both.
            condition = {"IfMatch": replaces.strip('"')} if replaces else {}
            kept = other._kept(target) if replaces else self._kept(path)
            if not begin and copied == size:
                try:
                    with other.told(target):
                        other.client.put_object(
                            Bucket=other.bucket, Key=target, Body=data, **condition, **kept
                        )
                    return True
                except OSError as error:
                    # Ceph refuses it in a bucket with versions, whatever is there: as parts then.
                    if error.errno != errno.ESTALE or not other._is_still(target, condition):
                        raise
            parts = Parts(other, target, condition, part=len(data), **kept)
            source = {"Bucket": self.bucket, "Key": path}
            try:
                for start, stop in ((0, begin), (copied, size)):
                    if start:
                        parts.send(data)
                    for at in range(start, stop, COPIED_PART):
                        parts.copy(source, version, at, min(at + COPIED_PART, stop))
                parts.close()
            except BaseException as error:
                parts.__exit__(type(error), error, None)
                raise
        return True

    def _is_still(self, path: str, condition: dict[str, str]) -> bool:
        """Whether an object is the one of a condition."""
        with contextlib.suppress(FileNotFoundError):
            return str(self.stat(path).version).strip('"') == condition.get("IfMatch")
        return False

    def _kept(self, path: str) -> dict[str, Any]:
        """Attributes that an object hands on to its replacement or copy. Tags that nobody may
        read are an error, as rules of access may hang on them."""
        with self.told(path):
            found = self.client.head_object(Bucket=self.bucket, Key=path)
            kept = {name: found[name] for name in _KEPT if name in found}
            try:
                tags = self.client.get_object_tagging(Bucket=self.bucket, Key=path).get(
                    "TagSet", []
                )
            except self._botocore.exceptions.ClientError as error:
                code = error.response["Error"]["Code"]
                if code == "AccessDenied":
                    text = (
                        f"its tags cannot be read, to keep them: allow s3:GetObjectTagging ({code})"
                    )
                    raise PermissionError(errno.EACCES, text, self.url(path)) from None
                if code != "NotImplemented":  # a store without tags
                    raise
                tags = []
        if tags:
            kept["Tagging"] = urlencode({tag["Key"]: tag["Value"] for tag in tags})
        return kept


def _is_odd(path: str) -> bool:
    """Whether obstore takes no such name."""
    return _ODD.search(path) is not None


def _take_contents(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object
) -> None:
    """Takes the objects out of a page of a listing before botocore parses it, which takes 70
    microseconds for each; these take 8. The fields are text."""
    if response_dict["status_code"] != 200:
        return
    page = ElementTree.fromstring(response_dict["body"])  # noqa: S314 - as botocore reads it
    tag = page.tag.removesuffix("ListBucketResult") + "Contents"
    objects = page.findall(tag)
    customized_response_dict["Contents"] = [
        {field.tag.rpartition("}")[2]: field.text or "" for field in found} for found in objects
    ]
    for found in objects:
        page.remove(found)
    response_dict["body"] = ElementTree.tostring(page)


def _seconds(moment: str) -> float:
    """Since 1970, of `2026-11-29T07:00:00.000Z`."""
    return datetime.datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()


class Parts:
    """A multipart upload through boto3. condition: of the request that makes the object."""

    def __init__(
        self, store: S3Store, path: str, condition: dict[str, str], *, part: int, **kept: Any
    ) -> None:
        self._client, self._condition, self._part = store.client, condition, part
        self._store, self._path = store, path
        self._place = {"Bucket": store.bucket, "Key": path}
        self._held = bytearray()
        self._sent: deque[Future[dict[str, Any]]] = deque()
        self._done: list[dict[str, Any]] = []
        self._pool = ThreadPoolExecutor(COPIES, "warpcipher-part")
        begun = self._client.create_multipart_upload(**self._place, **kept)
        self._place["UploadId"] = begun["UploadId"]

    def write(self, data: Buffer, /) -> None:
        self._held += data
        while len(self._held) >= self._part:
            with memoryview(self._held) as view:
                piece = bytes(view[: self._part])
            del self._held[: self._part]
            self.send(piece)

    def send(self, piece: bytes) -> None:
        """One part of what is given."""
        self._submit("upload_part", Body=piece)

    def copy(self, source: dict[str, str], version: str, begin: int, end: int) -> None:
        """One part that the server copies from an object of this version."""
        self._submit(
            "upload_part_copy",
            CopySource=source,
            CopySourceRange=f"bytes={begin}-{end - 1}",
            CopySourceIfMatch=version,
        )

    def _submit(self, method: str, **given: Any) -> None:
        number = len(self._done) + len(self._sent) + 1
        if len(self._sent) == (IN_FLIGHT if method == "upload_part" else COPIES):
            self._done.append(self._sent.popleft().result())

        def ask() -> dict[str, Any]:
            answer = getattr(self._client, method)(**self._place, PartNumber=number, **given)
            return {"PartNumber": number, "ETag": answer.get("CopyPartResult", answer)["ETag"]}

        self._sent.append(self._pool.submit(ask))

    def close(self) -> None:
        """Makes the object."""
        if self._held or not (self._sent or self._done):
            self.send(bytes(self._held))
        while self._sent:
            self._done.append(self._sent.popleft().result())
        # Ceph ignores a condition here.
        if "IfMatch" in self._condition and not self._store._is_still(self._path, self._condition):
            raise changed(self._store.url(self._path))
        try:
            with self._store.told(self._path):
                self._client.complete_multipart_upload(
                    **self._place, MultipartUpload={"Parts": self._done}, **self._condition
                )
        except OSError as error:
            if error.errno == errno.ESTALE and "IfNoneMatch" in self._condition:
                raise exists(self._store.url(self._path)) from None
            raise
        self._pool.shutdown()

    def __exit__(self, *_: object) -> None:
        """Aborts, once no part is on its way: one that came later would stay."""
        self._pool.shutdown(cancel_futures=True)
        self._client.abort_multipart_upload(**self._place)
