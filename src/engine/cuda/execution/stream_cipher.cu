// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/chacha/choose.hpp"
#include "engine/cuda/chacha/launches.hpp"
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

chacha::Messages messages_of(const DeviceBatch& b, std::uint32_t* verdicts) {
  return {b.views, b.hashes.views, b.stream_keys->bytes(), b.messages, form_of(b.algorithm), verdicts};
}

chacha::Tags tags_of(const DeviceBatch& b, std::uint32_t* verdicts) {
  return {b.hashes.views,        b.hashes.first_chunk,      b.stream_keys->r(), b.stream_keys->s(), b.hashes.chunks,
          b.hashes.chunk_blocks, b.hashes.work.most_blocks, verdicts,           b.are_parts};
}

}  // namespace

void StreamKeys::derive(const DeviceBatch& b, const Speculation& speculation) {
  if (streams_ != nullptr) return;
  const std::uint32_t of_aead = b.algorithm.is_aead() ? b.messages : 0;
  memory_.emplace();
  const auto streams = memory_->reserve_on_device<chacha::KeyStream>(b.messages);
  const auto r = memory_->reserve_on_device<Block>(of_aead);
  const auto s = memory_->reserve_on_device<Block>(of_aead);
  memory_->allocate(b.stream);
  streams_ = memory_->device(streams);
  if (of_aead != 0) {
    r_ = memory_->device(r);
    s_ = memory_->device(s);
  }
  chacha::prepare(b.device, b.stream,
                  {b.views, b.hashes.views, bytes_, b.messages, form_of(b.algorithm), b.are_parts, streams_, r_, s_},
                  speculation);
}

void derive_stream_keys(const DeviceBatch& b) {
  if (!b.algorithm.is_aead() || b.plan.aead->chosen == AeadKernel::chunks) b.stream_keys->derive(b);
}

void run_stream_cipher(const DeviceBatch& b, std::uint32_t* verdicts) {
  if (!b.algorithm.is_aead()) {
    b.stream_keys->derive(b);
    return chacha::add_key_streams(b.device, b.stream, b.plan.stream->chosen, batch_of(b));
  }
  const bool encrypting = b.direction == Direction::encrypt;
  if (b.plan.aead->chosen == AeadKernel::lanes) {
    return chacha::run_messages(b.device, b.stream, messages_of(b, verdicts), b.units, encrypting, {});
  }
  b.stream_keys->derive(b);
  chacha::run_chunks(b.device, b.stream, batch_of(b), tags_of(b, verdicts),
                     encrypting ? chacha::Pass::encrypt : chacha::Pass::decrypt);
}

void run_stream_tags(const DeviceBatch& b, std::uint32_t* verdicts) {
  b.stream_keys->derive(b);
  chacha::run_chunks(b.device, b.stream, batch_of(b), tags_of(b, verdicts), chacha::Pass::hash);
}

void gather_stream(const DeviceBatch& b, const chacha::TextPieces& pieces) {
  b.stream_keys->derive(b);
  chacha::run_chunks(b.device, b.stream, batch_of(b), tags_of(b, nullptr), chacha::Pass::gather, pieces);
}

void start_stream_cipher(const DeviceBatch& b, std::uint32_t* verdicts, Speculation& speculation) {
  if (b.plan.aead->chosen == AeadKernel::chunks) {
    speculation.least_units = UINT64_MAX;
    return b.stream_keys->derive(b, speculation);
  }
  speculation.most_units = longest_by_lanes(conditions_of(b.device), b.plan.aead->work);
  chacha::run_messages(b.device, b.stream, messages_of(b, verdicts), b.units, b.direction == Direction::encrypt,
                       speculation);
}

}  // namespace warpcipher::cuda
