// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/chacha/aead.hpp"
#include "engine/cuda/chacha/key_stream.hpp"
#include "engine/cuda/chacha/prepare.hpp"
#include "engine/cuda/choice/chacha.hpp"
#include "engine/cuda/execution/device_batch.hpp"

namespace warpcipher::cuda {
namespace {

chacha::NonceForm form_of(const Algorithm& algorithm) {
  if (!algorithm.is_aead()) return chacha::NonceForm::counter_first;
  return algorithm.cipher.id == CipherId::xchacha20 ? chacha::NonceForm::extended : chacha::NonceForm::nonce;
}

chacha::Batch batch_of(const DeviceBatch& b) {
  return {b.views, b.first_tile, b.stream_keys->streams(), b.messages, b.tiles, b.units, b.most_units};
}

StreamWork work_of(const DeviceBatch& b) { return {b.messages, b.units, b.most_units}; }

void run_text(const DeviceBatch& b, const std::uint32_t* verdicts) {
  const StreamKernel kernel = choose_stream(conditions_of(b.device), work_of(b));
  chacha::add_key_streams(b.device, b.stream, kernel, batch_of(b), verdicts);
}

}  // namespace

void StreamKeys::derive(const DeviceBatch& b, Block* masks) {
  if (streams_ != nullptr) return;
  const bool is_aead = b.algorithm.is_aead();
  memory_.emplace();
  const auto streams = memory_->reserve_on_device<chacha::KeyStream>(b.messages);
  const auto r = memory_->reserve_on_device<Block>(is_aead ? b.messages : 0);
  memory_->allocate(b.stream);
  streams_ = memory_->device(streams);
  if (is_aead) r_ = memory_->device(r);
  chacha::prepare(
      b.device, b.stream,
      {b.views, b.hashes.views, bytes_, b.messages, form_of(b.algorithm), b.are_parts, streams_, r_, masks});
}

void run_stream_cipher(const DeviceBatch& b, std::uint32_t* verdicts) {
  if (!b.algorithm.is_aead()) {
    b.stream_keys->derive(b, nullptr);
    return run_text(b, nullptr);
  }
  const chacha::Tags tags{b.hashes.views,  b.hashes.first_chunk,  b.stream_keys->r(),        b.hashes.masks,
                          b.hashes.chunks, b.hashes.chunk_blocks, b.hashes.work.most_blocks, verdicts,
                          b.are_parts};
  const bool encrypting = b.direction == Direction::encrypt;
  // Lanes give whole tags alone; parts are long, but for the last.
  if (b.are_parts || choose_aead(conditions_of(b.device), work_of(b)) == AeadKernel::chunks) {
    return chacha::run_chunks(b.device, b.stream, batch_of(b), tags, encrypting);
  }
  if (encrypting) run_text(b, nullptr);
  chacha::hash_by_lanes(b.device, b.stream, b.messages, tags);
  if (!encrypting) run_text(b, verdicts);
}

}  // namespace warpcipher::cuda
