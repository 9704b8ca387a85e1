# SPDX-License-Identifier: Apache-2.0
"""vLLM's scheduler and its `OffloadingConnector`, both as they are, with the vault's spec on a CPU.
Only the model is not there: a test fills in the blocks that the scheduler wants computed. vLLM 0.33
and what it imports have to be installed (`pip install --no-deps vllm==0.33.0` lacks much)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import warpcipher as wc

torch = pytest.importorskip("torch")
pytest.importorskip("vllm.v1.core.sched.scheduler", exc_type=ImportError)

BLOCKS, TOKENS, LAYERS = 20, 16, ("model.layers.0.self_attn.attn", "model.layers.1.self_attn.attn")
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 100,
    "max_position_embeddings": 512,
}


class Server:
    """A scheduler and one worker."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import vllm.platforms
        from vllm import config
        from vllm.distributed.kv_transfer.kv_connector.v1 import KVConnectorRole
        from vllm.distributed.kv_transfer.kv_connector.v1 import offloading_connector as offloading
        from vllm.platforms.cpu import CpuPlatform
        from vllm.utils.hashing import sha256
        from vllm.v1 import kv_cache_interface as interface
        from vllm.v1.core import kv_cache_utils
        from vllm.v1.core.sched.scheduler import Scheduler
        from vllm.v1.structured_output import StructuredOutputManager

        monkeypatch.setattr(vllm.platforms, "_current_platform", CpuPlatform(), raising=False)
        (folder / "config.json").write_text(json.dumps(MODEL))
        (folder / "key").write_bytes(bytes(range(32)))
        extra = {
            "spec_name": "VaultOffloadingSpec",
            "spec_module_path": "warpcipher.kv.vllm",
            "cpu_bytes_to_use": 1 << 20,
            "block_size": 2 * TOKENS,
            "master_key_path": str(folder / "key"),
        }
        made = config.VllmConfig(
            model_config=config.ModelConfig(
                str(folder), tokenizer=str(folder), skip_tokenizer_init=True, dtype="float16"
            ),
            cache_config=config.CacheConfig(block_size=TOKENS, enable_prefix_caching=True),
            scheduler_config=config.SchedulerConfig(
                max_num_seqs=4,
                max_num_batched_tokens=512,
                max_model_len=512,
                enable_chunked_prefill=True,
                is_encoder_decoder=False,
            ),
            device_config=config.DeviceConfig("cpu"),
            kv_transfer_config=config.KVTransferConfig(
                kv_connector="OffloadingConnector",
                kv_role="kv_both",
                kv_connector_extra_config=extra,
            ),
        )
        made.cache_config.num_gpu_blocks = BLOCKS
        spec = interface.FullAttentionSpec(
            block_size=TOKENS, num_kv_heads=2, head_size=32, dtype=torch.float16
        )
        page = spec.page_size_bytes
        tensors = [interface.KVCacheTensor(BLOCKS * page, [name], 0, page) for name in LAYERS]
        groups = [interface.KVCacheGroupSpec(list(LAYERS), spec)]
        caches = interface.KVCacheConfig(BLOCKS, tensors, groups)
        kv_cache_utils.init_none_hash(sha256)
        self.hasher = kv_cache_utils.get_request_block_hasher(TOKENS, sha256)
        structured = StructuredOutputManager(made)
        self.scheduler = Scheduler(made, caches, structured, block_size=TOKENS)
        self.connector = offloading.OffloadingConnector(made, KVConnectorRole.WORKER, caches)
        shape = BLOCKS, 2, TOKENS, 2, 32
        self.caches = {name: torch.zeros(shape, dtype=torch.float16) for name in LAYERS}
        self.connector.register_kv_caches(self.caches)
        self.worker = self.connector.connector_worker.worker
        self.started: dict[str, Any] = {}

    def forget(self) -> None:
        """The blocks on the GPU."""
        assert self.scheduler.reset_prefix_cache()
        for tensor in self.caches.values():
            tensor.zero_()

    def serve(self, name: str, prompt: list[int]) -> None:
        from vllm.sampling_params import SamplingParams
        from vllm.v1.request import Request

        sampling = SamplingParams(max_tokens=4, ignore_eos=True)
        self.scheduler.add_request(Request(name, prompt, sampling, None, block_hasher=self.hasher))
        steps = 0
        while self.scheduler.requests or self.worker._jobs or steps < 5:
            self.step()
            steps += 1
            assert steps < 50

    def step(self) -> None:
        from vllm.v1.outputs import KVConnectorOutput, ModelRunnerOutput

        output = self.scheduler.schedule()
        self.connector.bind_connector_metadata(output.kv_connector_metadata)
        self.connector.start_load_kv(None)
        for new in output.scheduled_new_reqs:
            self.started[new.req_id] = new
            for i, number in enumerate(new.block_ids[0]):
                for layer, tensor in enumerate(self.caches.values()):
                    if i >= new.num_computed_tokens // TOKENS:
                        tensor[number] = 10 * layer + i + 1
        self.connector.wait_for_save()
        self.worker.wait(set(self.worker._jobs))
        sent, received = self.connector.get_finished(output.finished_req_ids)
        moved = KVConnectorOutput(
            finished_sending=sent,
            finished_recving=received,
            kv_connector_worker_meta=self.connector.build_connector_worker_meta(),
        )
        names = list(output.num_scheduled_tokens)
        result = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: i for i, name in enumerate(names)},
            sampled_token_ids=[[7] for _ in names],
            kv_connector_output=moved,
        )
        self.scheduler.update_from_output(output, result)
        self.connector.clear_connector_metadata()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(tmp_path, monkeypatch)


def test_a_prompt_returns_from_sealed_memory(server: Server) -> None:
    prompt = list(range(3, 73))  # four blocks, two chunks, and six tokens more
    server.serve("first", prompt)
    assert server.started["first"].num_computed_tokens == 0
    texts = [bytes(tensor[1].view(torch.uint8).flatten()) for tensor in server.caches.values()]
    memory = bytes(server.worker._host)
    assert not any(text[:64] in memory for text in texts)
    server.forget()
    server.serve("second", prompt)
    second = server.started["second"]
    assert second.num_computed_tokens == 64
    for layer, tensor in enumerate(server.caches.values()):
        for i, number in enumerate(second.block_ids[0]):
            assert (tensor[number] == 10 * layer + i + 1).all()


def test_a_forged_block_stops_the_engine(server: Server) -> None:
    prompt = list(range(3, 73))
    server.serve("first", prompt)
    server.worker._host[1, 60] ^= 1
    server.forget()
    with pytest.raises(wc.InvalidTag, match="are not those that were stored"):
        server.serve("second", prompt)
