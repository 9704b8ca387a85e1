# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/guides/llm.md for ONNX Runtime and Triton, with a stand-in for what Triton
gives its Python backend."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import warpcipher as wc
from test_docs_python import BLOCK
from warpcipher import formats

np = pytest.importorskip("numpy", reason="NumPy is not installed")

PAGE = Path(__file__).parents[3] / "docs/guides/llm.md"
KEY = bytes(range(32))


def stand_in() -> Any:
    module: Any = ModuleType("triton_python_backend_utils")
    module.Tensor = lambda name, data: SimpleNamespace(name=name, as_numpy=lambda: data)
    module.InferenceResponse = lambda tensors: SimpleNamespace(output_tensors=tensors)
    module.get_input_tensor_by_name = lambda request, name: request[name]
    return module


def test_triton_loads_an_encrypted_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    vector = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["n"]) for n in "xy"]
    node = onnx.helper.make_node("Neg", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "negate", vector[:1], vector[1:])
    opset = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
    folder = tmp_path / "negate" / "1"
    folder.mkdir(parents=True)
    with (folder / "model.onnx.cobblestone").open("wb") as file:
        formats.encrypt_stream(io.BytesIO(model.SerializeToString()), file, KEY)

    backend = stand_in()
    monkeypatch.setitem(sys.modules, backend.__name__, backend)
    monkeypatch.setenv("MODEL_KEY", KEY.hex())
    names: dict[str, Any] = {"wc": wc, "formats": formats, "Path": Path}
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if block["needs"] in ("onnxruntime", backend.__name__):
            exec(compile(block["code"], PAGE.name, "exec"), names)  # noqa: S102
    served = names["TritonPythonModel"]()
    served.initialize({"model_repository": str(tmp_path / "negate"), "model_version": "1"})
    x = np.arange(3, dtype=np.float32)
    (answer,) = served.execute([{"x": backend.Tensor("x", x)}])
    assert (answer.output_tensors[0].as_numpy() == -x).all()

    monkeypatch.setenv("MODEL_KEY", bytes(32).hex())
    with pytest.raises(wc.InvalidTag):
        names["TritonPythonModel"]().initialize(
            {"model_repository": str(tmp_path / "negate"), "model_version": "1"}
        )
