# SPDX-License-Identifier: Apache-2.0
"""Parquet files that Spark encrypts, read here, and files encrypted here, read by Spark.

Files that Spark made (tests/vectors/spark) are read in every run. Spark itself takes a minute and
half a gigabyte: `make test-spark` asks for it.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_support import run
from parquet_cases import encryption, pq, read_plain
from parquet_java import SHAPE, SMALL, VECTOR_ROWS, VECTORS, Kms, columns_of, session, table, write
from test_device import cupy as cupy
from warpcipher import parquet
from warpcipher.formats import FormatError
from warpcipher.parquet import metadata as md
from warpcipher.parquet.kms import material_path
from warpcipher.parquet.thrift import read, read_whole

FOLDER = Path(__file__).parent.parent / "vectors" / "spark"
ROWS = 700
GCM, CTR = "AES_GCM_V1", "AES_GCM_CTR_V1"
OWN = {"name": "names", "place.u": "names", "tags.list.element": "rest", "id": "rest"}
every_vector = pytest.mark.parametrize("name", VECTORS)


def vector(name: str) -> tuple[Path, parquet.KmsKeys]:
    return FOLDER / f"{name}.parquet", parquet.KmsKeys(Kms())


@every_vector
def test_files_that_spark_made(name: str, tmp_path: Path) -> None:
    path, known = vector(name)
    expected = table(VECTOR_ROWS).select(SMALL)
    assert parquet.read_table(path, known).to_pylist() == expected.to_pylist()
    some = parquet.read_table(path, known, ["place.v"]).to_pylist()
    assert some == [{"place": {"v": row["place"]["v"]}} for row in expected.to_pylist()]
    again = tmp_path / "again.parquet"
    fresh = parquet.KmsKeys(Kms())
    parquet.rekey(path, again, known, fresh.config("rest", {"name": "names"}, bits=256))
    assert parquet.read_table(again, parquet.KmsKeys(Kms())).to_pylist() == expected.to_pylist()


@every_vector
@pytest.mark.parametrize("in_file", [False, True])
def test_chunks_of_files_that_spark_made(cupy: object, name: str, in_file: bool) -> None:
    """The same on the way to a GPU, for which the tests of tests/gpu have a real one."""
    path, _ = vector(name)
    with parquet.open(path if in_file else path.read_bytes(), parquet.KmsKeys(Kms(), path)) as file:
        there, here = file.column_chunks(device=0), file.column_chunks()
    assert there.footer == here.footer
    for one, other in zip(there.chunks, here.chunks, strict=True):
        assert (one.offset, one.data.tobytes()) == (other.offset, bytes(other.data))


@every_vector
def test_images_of_files_that_spark_made_have_no_padding(name: str) -> None:
    """Pages follow one another, and offset indexes say where they are."""
    path, known = vector(name)
    image = bytes(parquet.to_plain(path, known))
    assert read_plain(image).to_pylist() == table(VECTOR_ROWS).select(SMALL).to_pylist()
    pages = 0
    with parquet.open(image) as file:
        assert file.chunks([0], [0])[0].meta.keys() >= {md.BLOOM_OFFSET, md.BLOOM_LENGTH}
        for chunk in file.chunks(range(file.num_row_groups), range(len(file.names))):
            start, length = (chunk.fields[number][1] for number in (4, 5))
            index = read_whole(image[start : start + length], md.OFFSET_INDEX_SHAPE, "index")
            known_pages = [
                (location[md.LOCATION_OFFSET][1], location[md.LOCATION_SIZE][1])
                for location in index[md.PAGE_LOCATIONS][1][1]
            ]
            at = chunk.start
            found = []
            while at < chunk.start + chunk.size:
                header, end = read(image, md.PAGE_HEADER_SHAPE, "a header", at)
                size = end - at + header[md.COMPRESSED_PAGE_SIZE][1]
                found.append((at, size))
                at += size
            assert at == chunk.start + chunk.size
            assert found[chunk.dictionary :] == known_pages
            pages += len(known_pages)
    assert pages > len(SMALL) + 1


@every_vector
def test_filters_are_served_by_what_spark_wrote_for_them(name: str, tmp_path: Path) -> None:
    """Statistics, indexes and the Bloom filter of the image, read by DuckDB."""
    duckdb = pytest.importorskip("duckdb")
    path, known = vector(name)
    image = tmp_path / "image.parquet"
    parquet.to_plain(path, known, image)
    for wanted, rows in ((7, 1), (77, 0)):
        query = f"select count(*) from '{image}' where id = {wanted}"  # noqa: S608
        assert duckdb.sql(query).fetchall() == [(rows,)]
    probe = f"select bloom_filter_excludes from parquet_bloom_probe('{image}', 'id', 7)"  # noqa: S608
    assert duckdb.sql(probe).fetchall() == [(False,)]
    assert duckdb.sql(probe.replace("7)", "77)")).fetchall() == [(True,)]


def test_master_keys_of_what_spark_made_are_rotated(tmp_path: Path) -> None:
    path, _ = vector("signed")
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    shutil.copy(material_path(path), material_path(copy))
    assert parquet.KmsKeys(Kms(), copy).rotate_master_keys({"names": "rest"}) == 2
    masters = [
        json.loads(material)["masterKeyID"]
        for material in json.loads(Path(material_path(copy)).read_text()).values()
    ]
    assert sorted(masters) == ["footer", "rest"]
    expected = table(VECTOR_ROWS).select(SMALL).to_pylist()
    assert parquet.read_table(copy, parquet.KmsKeys(Kms())).to_pylist() == expected


def test_the_command_decrypts_what_spark_made(tmp_path: Path) -> None:
    path, known = vector("uniform")
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_bytes(known(parquet.inspect(path).key_metadata))
    run("parquet", "decrypt", "--key", "key", "-o", "plain", str(path), cwd=tmp_path)
    assert (tmp_path / "plain").read_bytes() == parquet.to_plain(path, known)


needs_spark = pytest.mark.skipif(
    not os.environ.get("WARPCIPHER_TEST_SPARK"), reason="make test-spark runs Spark"
)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="needs the pyspark package and a JDK")
    if shutil.which("javac") is None:
        pytest.fail("there is no javac: install a JDK, such as openjdk-17-jdk-headless")
    found = session(tmp_path_factory.mktemp("spark"))
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.createDataFrame(table(ROWS)).cache()


KINDS = ("uniform", "columns", "complete", "signed")
CODECS = ("uncompressed", "snappy", "gzip", "lz4", "lz4_raw", "zstd")
CASES = [
    (kind, algorithm, 128 if number % 4 in (0, 3) else 256, internal, double, CODECS[number % 6])
    for number, (kind, algorithm, internal, double) in enumerate(
        itertools.product(KINDS, (GCM, CTR), (True, False), (True, False))
    )
]


def options_of(
    kind: str, algorithm: str, bits: int, internal: bool, double: bool
) -> dict[str, Any]:
    options = {
        "encryption.algorithm": algorithm,
        "encryption.data.key.length.bits": bits,
        "encryption.key.material.store.internally": str(internal).lower(),
        "encryption.double.wrapping": str(double).lower(),
    }
    if kind == "uniform":
        return {**options, "encryption.uniform.key": "footer"}
    return {
        **options,
        "encryption.footer.key": "footer",
        "encryption.column.keys": columns_of(OWN),
        "encryption.complete.columns": str(kind == "complete").lower(),
        "encryption.plaintext.footer": str(kind == "signed").lower(),
    }


def read_by_spark(spark: Any, path: Path) -> list[dict[str, Any]]:
    """The rows of a file. A filter makes Spark read indexes and Bloom filters, too."""
    frame = spark.read.parquet(str(path))
    for wanted, rows in ((333, 1), (ROWS, 0)):
        assert frame.filter(f"id = {wanted}").count() == rows
    return frame.orderBy("id").toArrow().to_pylist()  # type: ignore[no-any-return]


@needs_spark
@pytest.mark.parametrize(("kind", "algorithm", "bits", "internal", "double", "codec"), CASES)
def test_what_spark_encrypts_is_read_and_what_is_encrypted_spark_reads(
    spark: Any,
    frame: Any,
    kind: str,
    algorithm: str,
    bits: int,
    internal: bool,
    double: bool,
    codec: str,
    tmp_path: Path,
) -> None:
    rows = table(ROWS).to_pylist()
    options = options_of(kind, algorithm, bits, internal, double)
    path = write(frame, tmp_path / "theirs", {**SHAPE, **options, "compression": codec})
    known = parquet.KmsKeys(Kms())
    assert parquet.read_table(path, known).to_pylist() == rows
    plain = tmp_path / "plain.parquet"
    parquet.to_plain(path, known, plain)
    assert pq.read_table(plain).to_pylist() == rows

    for name, source in (("encrypted", plain), ("rekeyed", path)):
        ours = tmp_path / f"{name}.parquet"
        fresh = parquet.KmsKeys(Kms(), None if internal else ours)
        config = fresh.config(
            "rest",
            {} if kind == "uniform" else {**OWN, "id": "footer"},
            double_wrapping=double,
            bits=bits,
            algorithm=algorithm,
            plaintext_footer=kind == "signed",
        )
        if kind == "columns":
            config = dataclasses.replace(config, columns=[])
        if source == plain:
            parquet.encrypt(source, ours, config)
        else:
            parquet.rekey(source, ours, known, config)
        if not internal:
            fresh.save()
        assert read_by_spark(spark, ours) == rows


@needs_spark
@pytest.mark.parametrize("double", [True, False])
def test_what_one_rotated_the_other_reads(
    spark: Any, frame: Any, double: bool, tmp_path: Path
) -> None:
    options = options_of("columns", GCM, 128, False, double)
    path = write(frame, tmp_path / "theirs", {**SHAPE, **options})
    parquet.KmsKeys(Kms(), path).rotate_master_keys({"names": "footer", "rest": "footer"})
    for checksum in path.parent.glob(".*.crc"):  # Hadoop's, of the material before
        checksum.unlink()
    assert read_by_spark(spark, path) == table(ROWS).to_pylist()
    before = Path(material_path(path)).read_bytes()
    configuration = spark._jsc.hadoopConfiguration()
    for name, value in options.items():
        configuration.set(f"parquet.{name}", str(value))
    tools = spark._jvm.org.apache.parquet.crypto.keytools
    tools.KeyToolkit.rotateMasterKeys(str(path.parent), configuration)
    for name in options:
        configuration.unset(f"parquet.{name}")
    assert Path(material_path(path)).read_bytes() != before
    assert parquet.read_table(path, parquet.KmsKeys(Kms())).to_pylist() == table(ROWS).to_pylist()


@needs_spark
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "lz4", "zstd"])
def test_what_pyarrow_wrote_and_is_encrypted_here_spark_reads(
    spark: Any, codec: str, tmp_path: Path
) -> None:
    plain, ours = tmp_path / "plain.parquet", tmp_path / "ours.parquet"
    shape = {"data_page_size": 400, "write_batch_size": 40, "row_group_size": 300}
    pq.write_table(table(ROWS), plain, compression=codec, write_page_index=True, **shape)
    parquet.encrypt(plain, ours, parquet.KmsKeys(Kms()).config("footer", {"name": "names"}))
    assert read_by_spark(spark, ours) == table(ROWS).to_pylist()
    again = tmp_path / "again.parquet"
    parquet.to_plain(ours, parquet.KmsKeys(Kms()), again)
    assert read_by_spark(spark, again) == table(ROWS).to_pylist()


@needs_spark
def test_images_are_read_by_pyarrow_where_it_reads_the_file(frame: Any, tmp_path: Path) -> None:
    """The same keys, by pyarrow's own KMS tools."""
    path = write(
        frame, tmp_path / "theirs", {**SHAPE, **options_of("columns", GCM, 128, True, True)}
    )

    class Client(encryption.KmsClient):  # type: ignore[misc,name-defined]
        def __init__(self, _: Any) -> None:
            super().__init__()

        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
            raise NotImplementedError

        def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
            return Kms().unwrap_key(wrapped_key, master_key_identifier)

    factory = encryption.CryptoFactory(Client)
    properties = factory.file_decryption_properties(encryption.KmsConnectionConfig())
    with pq.ParquetFile(path, decryption_properties=properties) as file:
        theirs = file.read()
    assert theirs.equals(parquet.read_table(path, parquet.KmsKeys(Kms())))
    assert theirs.equals(read_plain(parquet.to_plain(path, parquet.KmsKeys(Kms()))))


@needs_spark
def test_levels_that_are_not_in_the_module_are_named(frame: Any, tmp_path: Path) -> None:
    options = options_of("uniform", GCM, 128, True, True)
    path = write(frame, tmp_path / "theirs", {**options, "writer.version": "v2"})
    with pytest.raises(
        FormatError, match=r"column id, row group 0: .* parquet-java puts the levels"
    ):
        parquet.read_table(path, parquet.KmsKeys(Kms()))


@needs_spark
def test_directories_with_key_material_beside_each_file(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    options = options_of("columns", GCM, 256, False, True)
    written = {f"parquet.{name}": str(value) for name, value in options.items()}
    frame = spark.createDataFrame(table(ROWS))
    frame.repartitionByRange(3, "id").write.options(**written).parquet(str(folder))
    assert len(list(folder.glob("part-*.parquet"))) == 3
    found = parquet.read_dataset(folder, parquet.KmsKeys(Kms())).to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == table(ROWS).to_pylist()
