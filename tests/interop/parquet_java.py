# SPDX-License-Identifier: Apache-2.0
"""Tables that Spark encrypts by parquet-java: their content, their KMS, a Spark that has both."""

from __future__ import annotations

import base64
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
aead = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")

MASTER_KEYS = {"footer": bytes(range(16)), "names": bytes(range(50, 66)), "rest": bytes(range(32))}
NONCE = 12
SMALL = ["id", "name", "tags", "place"]
"""The columns of the vectors."""
VECTORS: dict[str, dict[str, object]] = {
    "uniform": {"encryption.uniform.key": "footer", "compression": "zstd"},
    "columns": {
        "encryption.footer.key": "footer",
        "encryption.column.keys": "names:name,place.u;rest:tags.list.element",
        "encryption.algorithm": "AES_GCM_CTR_V1",
        "encryption.data.key.length.bits": 256,
        "encryption.double.wrapping": "false",
        "compression": "snappy",
    },
    "signed": {
        "encryption.footer.key": "footer",
        "encryption.column.keys": "names:name",
        "encryption.complete.columns": "true",
        "encryption.plaintext.footer": "true",
        "encryption.key.material.store.internally": "false",
        "compression": "gzip",
    },
}
"""tests/vectors/spark: options of parquet-java, less `parquet.`. `columns` leaves some plain."""
VECTOR_ROWS = 30
SHAPE = {
    "page.row.count.limit": 200,
    "page.size.row.check.min": 20,
    "bloom.filter.enabled#id": "true",
    "bloom.filter.expected.ndv#id": 64,
    "enable.dictionary#id": "false",
}
"""Several pages a chunk, and a Bloom filter, which a column that is all dictionary has not."""
_JAVA = Path(__file__).parent / "spark" / "SharedKeysKms.java"


class Kms:
    """The same KMS as `SharedKeysKms.java`."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        nonce = os.urandom(NONCE)
        box = aead.AESGCM(MASTER_KEYS[master_key_identifier])
        sealed = box.encrypt(nonce, key_bytes, master_key_identifier.encode())
        return base64.b64encode(nonce + sealed).decode()

    def unwrap_key(self, wrapped_key: Any, master_key_identifier: str) -> bytes:
        sealed = base64.b64decode(wrapped_key)
        box = aead.AESGCM(MASTER_KEYS[master_key_identifier])
        found = box.decrypt(sealed[:NONCE], sealed[NONCE:], master_key_identifier.encode())
        return bytes(found)


def table(rows: int) -> Any:
    """Dictionary pages, nulls, and nested columns of every kind."""
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "name": pa.array([None if i % 11 == 0 else f"name {i % 7}" for i in range(rows)]),
            "price": pa.array([i / 3 for i in range(rows)]),
            "flag": pa.array([i % 5 == 0 for i in range(rows)]),
            "blob": pa.array([bytes([i % 256]) * (i % 9) for i in range(rows)]),
            "tags": pa.array(
                [[i, i + 1] if i % 3 else None for i in range(rows)], pa.list_(pa.int32())
            ),
            "place": pa.array([{"u": i / 2, "v": {"w": str(i)}} for i in range(rows)]),
            "pairs": pa.array(
                [[(f"k{i % 4}", i)] for i in range(rows)], pa.map_(pa.string(), pa.int64())
            ),
        }
    )


def columns_of(keys: dict[str, str]) -> str:
    """parquet.encryption.column.keys: master keys and their columns."""
    masters = dict.fromkeys(keys.values())
    return ";".join(
        f"{master}:{','.join(name for name in keys if keys[name] == master)}" for master in masters
    )


def session(folder: Path) -> Any:
    """A Spark of one thread that has the KMS. Its classes are compiled into the folder."""
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    jars = Path(pyspark.origin).parent / "jars"
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", folder, _JAVA], check=True)
    from pyspark.sql import SparkSession

    keys = ",".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in MASTER_KEYS.items())
    factory = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
    options = {
        "spark.driver.extraClassPath": str(folder),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.parquet.crypto.factory.class": factory,
        "spark.hadoop.parquet.encryption.kms.client.class": "SharedKeysKms",
        "spark.hadoop.shared.keys": keys,
    }
    builder = SparkSession.builder.master("local[1]").appName("warpcipher")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def write(frame: Any, folder: Path, options: dict[str, Any]) -> Path:
    """The one file of a table that Spark writes, by options of parquet-java, less `parquet.`."""
    written = {f"parquet.{name}": str(value) for name, value in options.items()}
    frame.coalesce(1).write.mode("overwrite").options(**written).parquet(str(folder))
    (path,) = folder.glob("part-*.parquet")
    return path


def make_vectors(folder: Path) -> None:
    """Writes tests/vectors/spark again."""
    with tempfile.TemporaryDirectory() as name:
        spark = session(Path(name))
        frame = spark.createDataFrame(table(VECTOR_ROWS).select(SMALL))
        shape = {**SHAPE, "page.row.count.limit": 20, "page.size.row.check.min": 5}
        for vector, options in VECTORS.items():
            path = write(frame, Path(name) / vector, {**shape, **options})
            shutil.copy(path, folder / f"{vector}.parquet")
            material = path.with_name(f"_KEY_MATERIAL_FOR_{path.name}.json")
            if material.exists():
                shutil.copy(material, folder / f"_KEY_MATERIAL_FOR_{vector}.parquet.json")
        spark.stop()


if __name__ == "__main__":
    make_vectors(Path(sys.argv[1]))
