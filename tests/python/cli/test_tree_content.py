# SPDX-License-Identifier: Apache-2.0
"""A tree keeps: names, times, modes, links, holes; and who else reads it. Peers reproduce the
contexts."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from cli_support import make_key, run, run_json
from tree_support import FILES, content_of, sealed
from warpcipher import _tree_names as tree_names
from warpcipher import formats
from warpcipher.formats import trees as manifest

ODD = ["-dash", "new\nline", os.fsdecode(b"\xff\xfe"), "esc\x1b[31m", "x" * 230, ".hidden", "a b"]


def test_a_tree_comes_back_with_times_modes_and_links(tree: Path) -> None:
    run("decrypt", "--key", "key", "t.cobblestone", "-o", "back", cwd=tree)
    assert content_of(tree / "back") == content_of(tree / "t")
    run("check", "--key", "key", "t.cobblestone", cwd=tree)
    document = run_json("check", "--key", "key", "t.cobblestone", cwd=tree)
    assert document["ok"] is True
    assert {result["output"] for result in document["results"]} == {None}
    assert sum(result["output_bytes"] for result in document["results"]) == sum(
        map(len, FILES.values())
    )


def test_no_preserve_keeps_neither(tree: Path) -> None:
    (tree / "t/a").chmod(0o600)
    options = ("--no-preserve", "--key", "key")
    run("encrypt", *options, "--force", "t", cwd=tree, umask=0o022)
    assert stat.S_IMODE(sealed(tree, "a").stat().st_mode) == 0o644
    run("decrypt", *options, "t.cobblestone", "-o", "back", cwd=tree, umask=0o022)
    assert stat.S_IMODE((tree / "back/a").stat().st_mode) == 0o644
    assert stat.S_IMODE((tree / "back/sub").stat().st_mode) == 0o755
    assert (tree / "back/a").stat().st_mtime_ns > 1.5 * 10**18


@pytest.mark.parametrize(
    "which",
    [
        entry.name
        for entry in formats.FORMATS.values()
        if entry.binds_chunks and entry.takes_context
    ],
)
def test_other_formats(tree: Path, which: str) -> None:
    make_key(tree, "k2", "--format", which)
    run("encrypt", "--key", "k2", "t", "-o", "o", cwd=tree)
    run("decrypt", "--key", "k2", "o", "-o", "back", cwd=tree)
    assert content_of(tree / "back") == content_of(tree / "t")
    suffix = formats.get(which).extension
    (tree / f"o/a{suffix}").rename(tree / f"o/b{suffix}")
    done = run("decrypt", "--key", "k2", "o", "-o", "again", cwd=tree, expect=3)
    assert b"b is a" in done.stderr


def test_odd_names(tmp_path: Path) -> None:
    make_key(tmp_path)
    for name in ODD:
        (tmp_path / "t" / name).mkdir(parents=True)
        (tmp_path / "t" / name / name).write_bytes(os.fsencode(name))
        (tmp_path / "t" / (name + "l")).symlink_to(name)
    run("encrypt", "--key", "key", "t", cwd=tmp_path)
    run("decrypt", "--key", "key", "t.cobblestone", "-o", "back", cwd=tmp_path)
    assert content_of(tmp_path / "back") == content_of(tmp_path / "t")


def test_a_manifest_in_the_input_is_a_file_like_others(tree: Path) -> None:
    run("encrypt", "--key", "key", "t.cobblestone", "-o", "twice", cwd=tree)
    run("decrypt", "--key", "key", "twice", "-o", "once", cwd=tree)
    run("decrypt", "--key", "key", "once", "-o", "back", cwd=tree)
    assert content_of(tree / "back") == content_of(tree / "t")


def test_pyca_reads_files_and_the_manifest(tree: Path) -> None:
    """docs/trees.md, to the byte."""
    pytest.importorskip("cryptography.cobblestone")
    key = (tree / "key").read_bytes()
    context = b"\0warpcipher.tree.v1/file\0sub/a"
    assert manifest.context_of_file(b"", "sub/a") == context
    assert decrypt_with_pyca(key, sealed(tree, "sub/a").read_bytes(), context) == FILES["sub/a"]
    text = decrypt_with_pyca(
        key,
        (sealed(tree) / tree_names.NAME).read_bytes(),
        b"\0warpcipher.tree.v1/manifest\0",
    )
    first, *entries = map(json.loads, text.splitlines())
    assert first["tree"] == "warpcipher.tree.v1"
    assert first["entries"] == len(entries)
    by_name = {entry["name"]: entry for entry in entries}
    head = hashlib.sha256(sealed(tree, "b").read_bytes()[:128]).hexdigest()
    assert by_name["b"]["head"] == head
    assert by_name["link"] == {"name": "link", "kind": "link", "target": "sub/a"}


def decrypt_with_pyca(key: bytes, data: bytes, context: bytes) -> bytes:
    from cryptography.cobblestone import Cobblestone256Decryptor

    decryptor = Cobblestone256Decryptor(key, context)
    plain: bytes = decryptor.update(data) + decryptor.finalize()
    return plain


def test_tink_reads_a_file_of_a_tree(tree: Path) -> None:
    tink = pytest.importorskip("tink")
    from tink import secret_key_access, streaming_aead

    make_key(tree, "keyset", "--format", "tink")
    run("encrypt", "--key", "keyset", "t", "-o", "o", cwd=tree)
    streaming_aead.register()
    text = (tree / "keyset").read_text()
    handle = tink.json_proto_keyset_format.parse(text, secret_key_access.TOKEN)
    cipher = handle.primitive(streaming_aead.StreamingAead)
    with (tree / "o/sub/a.tink").open("rb") as file:
        opened = cipher.new_decrypting_stream(file, b"\0warpcipher.tree.v1/file\0sub/a")
        assert opened.read() == FILES["sub/a"]


def test_a_model_in_an_encrypted_folder_loads(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy", reason="NumPy is not installed")
    from warpcipher import weights

    key = make_key(tmp_path).read_bytes()
    (tmp_path / "llama").mkdir()
    tensors = {"a": np.arange(1000, dtype=np.float32), "b": np.ones((3, 4), np.float16)}
    index = {"weight_map": {name: f"{name}.safetensors" for name in tensors}}
    for name, tensor in tensors.items():
        weights.save_file({name: tensor}, tmp_path / f"llama/{name}.safetensors", None)
    for listed in (False, True):
        if listed:
            (tmp_path / "llama/model.safetensors.index.json").write_text(json.dumps(index))
        run("encrypt", "--key", "key", "-o", f"m{listed}", "llama", cwd=tmp_path)
        loaded = weights.load_file(tmp_path / f"m{listed}", key=key, framework="np")
        with weights.safe_open(tmp_path / f"m{listed}", key=key, framework="np") as model:
            for name, tensor in tensors.items():
                assert (loaded[name] == tensor).all()
                assert (model.get_tensor(name) == tensor).all()


def test_what_a_tree_keeps_and_what_it_does_not(tmp_path: Path) -> None:
    """Holes and the sticky bit stay; the run says once that hard links and attributes do not."""
    make_key(tmp_path)
    (tmp_path / "t/sticky").mkdir(parents=True)
    (tmp_path / "t/sticky").chmod(0o1777)
    with (tmp_path / "t/sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(5_000_000)
        file.write(b"middle" * 1000)
        file.truncate(10_000_123)
    done = run("encrypt", "--key", "key", "t", cwd=tmp_path)
    assert done.stderr == b""
    make_key(tmp_path, "new")
    run("rekey", "--key", "key", "--new-key", "new", "t.cobblestone", "-o", "n", cwd=tmp_path)
    for key, tree in (("key", "t.cobblestone"), ("new", "n")):
        run("decrypt", "--key", key, tree, "-o", f"{key}.back", cwd=tmp_path)
        assert content_of(tmp_path / f"{key}.back") == content_of(tmp_path / "t")
        if (tmp_path / "t/sparse").stat().st_blocks * 512 < 10_000_000:
            assert (tmp_path / f"{key}.back/sparse").stat().st_blocks * 512 < 100_000
    os.link(tmp_path / "t/sparse", tmp_path / "t/same")
    try:
        os.setxattr(tmp_path / "t/sparse", "user.note", b"x")
    except OSError:
        pytest.skip("no extended attributes here")
    done = run("encrypt", "--key", "key", "--update", "t", cwd=tmp_path)
    assert done.stderr.startswith(
        b"warpcipher: warning: t: its encrypted tree does not keep hard links of 2 files, extended "
        b"attributes and access lists of 2 files: a tar archive does\n"
    )


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="no setpriv")
def test_read_only_folders_are_written_again(tree: Path) -> None:
    """The run opens them, and gives them their permissions again."""
    drop = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    as_user = drop if os.geteuid() == 0 else ()
    for name in ("sub/deep", "sub", ""):
        (tree / "t" / name).chmod(0o555)
    options = ("--key", "key", "t", "-o", "o")
    back = ("decrypt", "--key", "key", "o", "-o", "back")
    try:
        for again in ((), ("--force",), ("--update",)):
            (tree / "t/sub/a").write_bytes(os.urandom(5))
            run("encrypt", *options, *again, cwd=tree, prefix=as_user)
            run(*back, *again, cwd=tree, prefix=as_user)
            assert content_of(tree / "back") == content_of(tree / "t")
            assert stat.S_IMODE((tree / "o/sub").stat().st_mode) == 0o555
    finally:
        for path in (tree / "t", tree / "o", tree / "back"):
            subprocess.run(["chmod", "-R", "u+w", path], check=False)


def test_list_and_info_of_a_tree(tree: Path) -> None:
    listed = run("list", "--key", "key", "t.cobblestone", cwd=tree, env={**os.environ, "TZ": "UTC"})
    lines = listed.stdout.decode().splitlines()
    assert "-rw-r--r--     1 2001-09-09 01:46 a" in lines
    assert "-rw-r--r-- 50000 " in "\n".join(lines)
    assert "drwxr-x---     0 2001-09-09 01:46 sub/" in lines
    assert any(line.endswith(" link -> sub/a") for line in lines)
    (found,) = run_json("list", "--key", "key", "t.cobblestone", cwd=tree)["trees"]
    assert (found["files"], found["folders"], found["links"]) == (5, 3, 1)
    assert found["plaintext_size"] == sum(map(len, FILES.values()))
    assert {entry["name"] for entry in found["entries"] if entry["kind"] == "file"} == set(FILES)
    for path in ("t.cobblestone", "t.cobblestone/MANIFEST.warpcipher"):
        (blind,) = run_json("info", path, cwd=tree)["files"]
        assert blind["tree"] is None
        assert b"an encrypted tree" in run("info", path, cwd=tree).stdout
        (open_,) = run_json("info", "--key", "key", path, cwd=tree)["files"]
        assert open_["tree"] == {key: found[key] for key in open_["tree"]}
        told = run("info", "--key", "key", path, cwd=tree).stdout
        assert b"holds      5 files of 50003 bytes, 3 folders, 1 link\n" in told
    done = run("list", "--key", "key", "t", "t.cobblestone/a.cobblestone", cwd=tree, expect=3)
    assert b"t has no manifest" in done.stderr
    assert b"a.cobblestone is a file: name the folder of an encrypted tree" in done.stderr
