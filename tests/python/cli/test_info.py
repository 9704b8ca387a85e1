# SPDX-License-Identifier: Apache-2.0
"""`info`, `completion`, `--version` and `--help`: what a user and a program see."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
import warpcipher as wc
from cli_support import COMMAND, make_key, run, run_json
from click.testing import CliRunner
from step_store import step_store
from warpcipher import formats
from warpcipher.cli.app import COMMANDS, MEASURE, cli


def test_version(tmp_path: Path) -> None:
    assert run("--version", cwd=tmp_path).stdout.decode() == f"warpcipher {wc.__version__}\n"


def test_console_script_is_this_command() -> None:
    from importlib.metadata import entry_points

    from warpcipher_command.main import main

    (script,) = entry_points(group="console_scripts", name="warpcipher")
    assert script.load() is main


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command: str) -> None:
    result = CliRunner().invoke(cli, [command, "--help"])
    assert result.exit_code == 0
    assert f"Usage: cli {command}" in result.output
    if command != "completion":
        assert "Exit codes:" in result.output


def test_help_lists_every_command() -> None:
    output = CliRunner().invoke(cli, ["--help"]).output
    assert all(f"\n  {command} " in output for command in COMMANDS)


@pytest.mark.parametrize("arguments", [(), ("--quick",), ("x", "--help")])
@pytest.mark.parametrize("name", MEASURE)
def test_commands_of_a_package_that_is_not_installed(
    name: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = click.Context(cli)
    installed = cli.get_command(context, name)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    absent = cli.get_command(context, name)
    assert installed is not None
    assert absent is not None
    assert absent.get_short_help_str(200) == installed.get_short_help_str(200)
    done = CliRunner().invoke(cli, [name, *arguments])
    assert done.exit_code == 2
    how = "pip install ./measure in a checkout, or 'warpcipher[measure]'"
    assert done.output == f"warpcipher: {name} is of another package: {how}\n"


def test_whole_command_line_in_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    Path("a").write_bytes(b"text")
    assert runner.invoke(cli, ["keygen", "key"]).exit_code == 0
    assert runner.invoke(cli, ["encrypt", "--key", "key", "a"]).exit_code == 0
    assert runner.invoke(cli, ["decrypt", "--key", "key", "a.cobblestone"]).exit_code == 2
    assert runner.invoke(cli, ["decrypt", "--key", "key", "-f", "a.cobblestone"]).exit_code == 0
    assert Path("a").read_bytes() == b"text"


def test_start_imports_little(tmp_path: Path) -> None:
    """Slow imports happen only where they are used."""
    script = (
        "import sys, warpcipher.cli; print([m for m in sys.modules if m.split('.')[0] in "
        "('tqdm', 'numpy', 'cryptography') or m.startswith('warpcipher.formats')])"
    )
    done = subprocess.run([COMMAND[0], "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


def test_info_without_the_key(tmp_path: Path) -> None:
    make_key(tmp_path)
    (tmp_path / "a").write_bytes(bytes(50_000))
    run("encrypt", "--key", "key", "a", cwd=tmp_path)
    (file,) = run_json("info", "a.cobblestone", cwd=tmp_path)["files"]
    assert file["size"] == 56 + 50_000 + 4 * 16
    assert file["certain"] is False
    found = {entry["format"]: entry for entry in file["candidates"]}
    assert set(found) >= {"cobblestone-128", "cobblestone-256", "raw"}
    assert found["cobblestone-256"]["plaintext_size"] == 50_000
    assert found["cobblestone-256"]["chunk_size"] == 16384
    assert found["cobblestone-256"]["chunks"] == 4
    assert found["cobblestone-256"]["key"].startswith("32 bytes")
    text = run("info", "a.cobblestone", cwd=tmp_path).stdout.decode()
    assert "may be cobblestone-256" in text
    assert "plaintext  50000 bytes" in text


def test_info_puts_the_format_of_the_name_first(tmp_path: Path) -> None:
    key = make_key(tmp_path, "key", "--format", "tink")
    (tmp_path / "a").write_bytes(bytes(50_000))
    run("encrypt", "--key", key, "a", cwd=tmp_path)
    (file,) = run_json("info", "a.tink", cwd=tmp_path)["files"]
    assert file["candidates"][0]["format"] == "tink"
    assert file["candidates"][0]["name_fits"] is True


def test_info_with_the_key(tmp_path: Path) -> None:
    make_key(tmp_path)
    make_key(tmp_path, "other")
    (tmp_path / "a").write_bytes(bytes(50_000))
    run("encrypt", "--key", "key", "--context", "c", "a", cwd=tmp_path)
    arguments = ("info", "--context", "c", "a.cobblestone")
    (file,) = run_json(*arguments, "--key", "key", cwd=tmp_path)["files"]
    assert file["certain"] is True
    assert [entry["format"] for entry in file["candidates"]] == ["cobblestone-256"]
    done = run(*arguments, "--key", "other", cwd=tmp_path, expect=3)
    assert b"the key does not open it, with a context of 1 byte: wrong key" in done.stderr
    done = run("info", "a.cobblestone", "--key", "key", cwd=tmp_path, expect=3)
    assert b"the key does not open it, with no context" in done.stderr
    run("info", "--context-hex", "63", "a.cobblestone", "--key", "key", cwd=tmp_path)
    run("info", *arguments[1:], "--context-hex", "63", cwd=tmp_path, expect=2)


def test_info_of_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = (tmp_path / make_key(tmp_path)).read_bytes()
    make_key(tmp_path, "other")
    monkeypatch.chdir(tmp_path)

    def said(*arguments: str, expect: int = 0) -> str:
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == expect, done.output
        return done.output

    with step_store() as store:
        store.put("in/a/b", bytes(50_000))
        said("encrypt", "--key", "key", "step://in", "-o", "step://tree")
        Path("plain").write_bytes(bytes(9))
        formats.encrypt_file("plain", "step://alone", key)
        one = "step://tree/a/b.cobblestone"
        for keys, verdict in (((), "may be"), (("--key", "key"), "is")):
            for url, size in ((one, 50_000), ("step://alone", 9)):
                output = said("info", url, *keys)
                assert f"{verdict} cobblestone-256" in output
                assert f"plaintext  {size} bytes" in output
            for url in ("step://tree", "step://tree/", "step://tree/MANIFEST.warpcipher"):
                output = said("info", url, *keys)
                assert "an encrypted tree" in output
                assert ("1 file of 50000 bytes" in output) == bool(keys)
        assert "the key does not open it" in said(
            "info", "step://alone", "--key", "other", expect=3
        )
        assert "the tree 'step://tree', whose manifest this key" in said(
            "info", one, "--key", "other", expect=3
        )
        missing = said("info", "step://in/nothing", expect=4)
        assert "no such object" in missing
        assert "plaintext" not in missing
    assert "plain: 9 bytes" in said("info", f"file://{tmp_path}/plain")


def test_one_byte_is_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    assert run("info", "a", cwd=tmp_path).stdout.startswith(b"a: 1 byte\n")


def test_info_of_standard_input_is_refused(tmp_path: Path) -> None:
    done = run("info", "-", cwd=tmp_path, stdin=b"text", expect=2)
    assert b"standard input (-) has none" in done.stderr


def test_info_of_missing_file_goes_on(tmp_path: Path) -> None:
    make_key(tmp_path)
    report = run_json("info", "missing", "key", ".", cwd=tmp_path, expect=4)
    assert [entry["path"] for entry in report["files"]] == ["key"]


def test_info_of_a_file_cut_short_goes_on(tmp_path: Path) -> None:
    make_key(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(bytes(50_000))
    run("encrypt", "--key", "key", "a", "b", cwd=tmp_path)
    os.truncate(tmp_path / "a.cobblestone", 56 + 16400 + 5)
    report = run_json(
        "info", "--key", "key", "a.cobblestone", "b.cobblestone", cwd=tmp_path, expect=3
    )
    assert [entry["path"] for entry in report["files"]] == ["b.cobblestone"]


def test_info_does_not_wait_for_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = run("info", "pipe", "/dev/zero", "", cwd=tmp_path, expect=2)
    assert done.stdout == b""
    assert done.stderr.splitlines() == [
        b"warpcipher: pipe is not a regular file",
        b"warpcipher: /dev/zero is not a regular file",
        b"warpcipher: an empty name: No such file or directory",
    ]


def test_info_needs_something_to_tell(tmp_path: Path) -> None:
    run("info", "--context", "c", "key", cwd=tmp_path, expect=2)
    run("info", cwd=tmp_path, expect=2)
    run("info", "--key", "key", "--engines", cwd=tmp_path, expect=2)


def test_info_lists_what_there_is(tmp_path: Path) -> None:
    report = run_json("info", "--engines", "--algorithms", "--formats", cwd=tmp_path)
    assert report["version"] == wc.__version__
    assert [entry["name"] for entry in report["engines"]] == [entry.name for entry in wc.engines()]
    assert [entry["name"] for entry in report["algorithms"]] == [
        entry.name for entry in wc.algorithms()
    ]
    assert [entry["name"] for entry in report["formats"]] == list(formats.FORMATS)
    for entry in report["engines"]:
        assert entry["usable"] or entry["reason"]
        assert entry["constant_time"] == (entry["name"] != "reference")
    text = run("info", "--engines", "--algorithms", "--formats", cwd=tmp_path).stdout.decode()
    assert all(entry.name in text for entry in (*wc.engines(), *wc.algorithms()))
    assert all(name in text for name in formats.FORMATS)
    assert text.count("not constant time") == 1


def test_algorithms_stand_in_columns(tmp_path: Path) -> None:
    text = run("info", "--algorithms", cwd=tmp_path).stdout.decode()
    heading, *rows = text.splitlines()
    assert len(rows) == len(wc.algorithms())
    starts = [heading.index("IV"), heading.index("parallel")]
    for row in rows:
        assert all(row[at - 2 : at] == "  " and row[at] != " " for at in starts), row


def test_output_of_info_escapes_names(tmp_path: Path) -> None:
    (tmp_path / "esc\x1b[31m").write_bytes(bytes(100))
    done = run("info", "esc\x1b[31m", cwd=tmp_path)
    assert b"\x1b" not in done.stdout
    assert json.loads(run("info", "--json", "esc\x1b[31m", cwd=tmp_path).stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(tmp_path: Path, shell: str) -> None:
    script = run("completion", shell, cwd=tmp_path).stdout.decode()
    assert "_WARPCIPHER_COMPLETE" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def complete(*words: str, cwd: Path) -> list[str]:
    """The words that bash would offer for the last one."""
    environment = {
        **os.environ,
        "_WARPCIPHER_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("warpcipher", *words)),
        "COMP_CWORD": str(len(words)),
    }
    output = run(cwd=cwd, env=environment).stdout.decode()
    return [line.partition(",")[2] for line in output.splitlines()]


def test_completion_offers_commands_and_values(tmp_path: Path) -> None:
    assert complete("enc", cwd=tmp_path) == ["encrypt"]
    assert complete("encrypt", "--format", "cobble", cwd=tmp_path) == [
        "cobblestone-128",
        "cobblestone-256",
    ]
    assert "aes-256-gcm" in complete("raw", "encrypt", "--algorithm", "aes-256", cwd=tmp_path)
    assert "cpu" in complete("decrypt", "--engine", "", cwd=tmp_path)
    assert "AES128_GCM_HKDF_4KB" in complete("keygen", "--template", "AES128", cwd=tmp_path)
    assert "--force" in complete("decrypt", "--fo", cwd=tmp_path)


def test_completion_of_an_unknown_shell(tmp_path: Path) -> None:
    run("completion", "tcsh", cwd=tmp_path, expect=2)


FOREIGN = {
    "openssl": b"Salted__" + bytes(40),
    "openssl base64": b"U2FsdGVkX1+abcdefgh\n",
    "gpg armored": b"-----BEGIN PGP MESSAGE-----\n\nhQEM\n",
    "luks": b"LUKS\xba\xbe\x00\x02" + bytes(600),
    "safetensors": (60).to_bytes(8, "little") + b'{"a": {"dtype": "F32"}}'.ljust(60) + bytes(8),
    "parquet": b"PAR1" + bytes(600) + b"PAR1",
    "parquet encrypted": b"PARE" + bytes(600) + b"PARE",
    "pem": b"-----BEGIN PRIVATE KEY-----\nMIIE\n",
}
KEYS = {
    "an identity of age": b"# created: 2026-11-28\n# public key: age1\nAGE-SECRET-KEY-1QQQQ\n",
    "a recipient of age": b"age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj\n",
    "a secret key of Crypt4GH": b"-----BEGIN CRYPT4GH PRIVATE KEY-----\nYzRnaC12MQ==\n",
    "a public key of Crypt4GH": b"-----BEGIN CRYPT4GH PUBLIC KEY-----\nYzRnaC12MQ==\n",
    "a secret key of SSH": b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE\n",
    "a public key of SSH": b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI me@host\n",
    "a Tink keyset": formats.Keyset.generate().to_json().encode(),
    "a Tink keyset that a KMS encrypted": b'{\n  "encryptedKeyset": "AAAA"}',
    "a JSON Web Key": b'{"alg": "A256GCM", "kty": "oct", "k": "AAAA"}',
}


@pytest.mark.parametrize("what", KEYS)
def test_a_key_is_called_a_key(tmp_path: Path, what: str) -> None:
    (tmp_path / "file").write_bytes(KEYS[what])
    (entry,) = run_json("info", "file", cwd=tmp_path)["files"]
    assert entry["foreign"]["name"] == "key"
    assert entry["foreign"]["description"].partition(",")[0] == what
    assert entry["candidates"] == []


def test_info_says_why_the_right_key_does_not_open_a_file(tmp_path: Path) -> None:
    """As `decrypt` says it: not that the key is another."""
    make_key(tmp_path, "id", "--format", "age")
    make_key(tmp_path)
    text = b"age-encryption.org/v1\n-> scrypt " + b"A" * 22 + b" 30\n" + b"A" * 43 + b"\n"
    (tmp_path / "work.age").write_bytes(text + b"--- " + b"A" * 43 + b"\n" + bytes(40))
    many = b"-> X25519 " + b"A" * 43 + b"\n" + b"A" * 43 + b"\n"
    many = b"age-encryption.org/v1\n" + 5000 * many + b"--- " + b"A" * 43 + b"\n" + bytes(40)
    (tmp_path / "many.age").write_bytes(many)
    environment = {**os.environ, "PHRASE": "secret"}
    for name, key, says in (
        (
            "work.age",
            ("--passphrase-env", "PHRASE"),
            b"the work factor of scrypt is 30, and at most",
        ),
        ("work.age", ("-i", "id"), b"the file was encrypted with a passphrase"),
        ("many.age", ("-i", "id"), b"the header has more than 4096 recipients"),
        (
            "work.age",
            ("--key", "key"),
            b"a file of format age, and the key is one of cobblestone-256",
        ),
    ):
        done = run("info", name, *key, cwd=tmp_path, env=environment, expect=3)
        assert says in done.stderr
        decrypted = run("decrypt", name, *key, "-o", "-", cwd=tmp_path, env=environment, expect=3)
        assert key[0] == "--key" or says in decrypted.stderr


@pytest.mark.parametrize("which", FOREIGN)
def test_files_of_other_programs_are_known(tmp_path: Path, which: str) -> None:
    (tmp_path / "file").write_bytes(FOREIGN[which])
    (entry,) = run_json("info", "file", cwd=tmp_path)["files"]
    assert entry["foreign"]["name"] == which.partition(" ")[0]
    assert entry["candidates"] == []
    make_key(tmp_path)
    done = run("info", "--key", "key", "file", cwd=tmp_path, expect=3)
    assert f"; it is {entry['foreign']['description']}".encode() in done.stderr
    done = run("decrypt", "--key", "key", "-o", "text", "file", cwd=tmp_path, expect=3)
    says = f"file: the key does not open it; it is {entry['foreign']['description']}: "
    assert (says + entry["foreign"]["hint"]).encode() in done.stderr
    shown = run("info", "file", cwd=tmp_path).stdout.decode()
    assert f"is {entry['foreign']['name']}: " in shown


def test_what_only_looks_like_gpg_may_be_a_format_of_ours_too() -> None:
    from warpcipher.formats.foreign import identify

    for beginning in (b"\x85\x01\x0c\x03" + bytes(8) + b"\x01", b"\x8c\x0d\x04\x09\x03\x08"):
        found = identify(beginning + bytes(300), 400)
        assert found is not None
        assert (found.name, found.certain) == ("gpg", False)
    found = identify(b"PAR1" + bytes(300), 400, bytes(4))
    assert found is not None
    assert (found.name, found.hint, found.certain) == ("parquet", "warpcipher parquet info", False)
    assert identify(b"", 0) is None
    assert identify(b"\x18" + bytes(511), 10_000) is None
    assert identify((10**9).to_bytes(8, "little") + b'{"a', 10**10) is None


@pytest.mark.parametrize("name", ["AES-256-CTR", "aes_256_ctr", "AES256CTR"])
def test_algorithms_in_any_case(tmp_path: Path, name: str) -> None:
    options = ("--algorithm", name, "--key-hex", "00" * 32)
    done = run("raw", "encrypt", *options, "--iv-hex", "00" * 16, "-", cwd=tmp_path, stdin=b"x")
    assert f"warpcipher: {name!r} is aes-256-ctr\n".encode() in done.stderr


def test_algorithms_that_are_meant(tmp_path: Path) -> None:
    for name, like in (
        ("aes-256-crt", b"aes-256-ctr"),
        ("aes256gmc", b"aes-256-gcm"),
        ("3des-cbc", b"des-ede3-cbc or "),
    ):
        done = run("explain", name, cwd=tmp_path, expect=2)
        assert b"did you mean " in done.stderr
        assert like in done.stderr
    done = run("explain", "rot13", cwd=tmp_path, expect=2)
    assert b"unknown algorithm 'rot13': `warpcipher info --algorithms`" in done.stderr
    pair = ("--pair", "00" * 16 + ":" + "00" * 16)
    done = run(
        "verify", "--algorithm", "AES-128", *pair, "--key-hex", "00" * 16, cwd=tmp_path, expect=6
    )
    assert b"'AES-128' is aes-128" in done.stderr


def test_python_dash_m_is_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "warpcipher", "--version"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout.startswith(b"warpcipher ")


def test_help_has_the_exit_codes_of_its_command(tmp_path: Path) -> None:
    for command, there, absent in (
        ("encrypt", "  3    not", "  6 "),
        ("keygen", "  4    the", "  3 "),
        ("search", "  6    no key in the range", "  3 "),
        ("verify", "  6    the key does not pass", "  7 "),
    ):
        text = run(command, "--help", cwd=tmp_path).stdout.decode()
        assert there in text
        assert absent not in text
