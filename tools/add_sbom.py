# SPDX-License-Identifier: Apache-2.0
"""Puts a bill of materials into a wheel: the libraries in its extensions (PEP 770, CycloneDX).

    add_sbom.py WHEEL NAME==VERSION...

It lies in .dist-info/sboms/warpcipher.cdx.json and has no time in it, so that equal wheels stay
equal. auditwheel writes its own file there when it brings libraries along.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import zipfile
from pathlib import Path

NAME = "warpcipher.cdx.json"


def component(requirement: str, kind: str = "library") -> dict[str, str]:
    name, equals, version = requirement.partition("==")
    if not (name and equals and version):
        sys.exit(f"add_sbom: {requirement!r} is not NAME==VERSION")
    purl = f"pkg:pypi/{name}@{version}"
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}


def bill(wheel: Path, linked: list[str]) -> bytes:
    """The bill of materials of a wheel, by its name."""
    name, version = wheel.name.split("-")[:2]
    subject = component(f"{name}=={version}")
    parts = [component(requirement) for requirement in linked]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": parts,
        "dependencies": [
            {"ref": subject["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]},
            *({"ref": part["bom-ref"]} for part in parts),
        ],
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def main(wheel: Path, linked: list[str]) -> None:
    new = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as out:
        (record,) = (i for i in old.infolist() if i.filename.endswith(".dist-info/RECORD"))
        path = f"{record.filename.removesuffix('RECORD')}sboms/{NAME}"
        if path in old.namelist():
            sys.exit(f"add_sbom: {wheel} has {path} already")
        for info in old.infolist():
            if info is not record:
                out.writestr(info, old.read(info))
        text = bill(wheel, linked)
        entry = zipfile.ZipInfo(path, record.date_time)
        entry.external_attr = record.external_attr
        out.writestr(entry, text, zipfile.ZIP_DEFLATED)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        line = f"{path},sha256={digest},{len(text)}\n"
        out.writestr(record, old.read(record) + line.encode())
    new.replace(wheel)


if len(sys.argv) < 2:
    sys.exit("usage: add_sbom.py WHEEL NAME==VERSION...")
main(Path(sys.argv[1]), sys.argv[2:])
