// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/chacha/aead.hpp"
#include "engine/cuda/chacha/key_stream.hpp"
#include "engine/cuda/chacha/prepare.hpp"
#include "engine/cuda/choice/chacha.hpp"
#include "engine/cuda/execution/device_batch.hpp"
#include "engine/cuda/execution/length_order.hpp"

namespace warpcipher::cuda {
namespace {

chacha::NonceForm form_of(const Algorithm& algorithm) {
  if (!algorithm.is_aead()) return chacha::NonceForm::counter_first;
  return algorithm.cipher.id == CipherId::xchacha20 ? chacha::NonceForm::extended : chacha::NonceForm::nonce;
}

chacha::KeySource source_of(const DeviceBatch& b) {
  return {b.views, b.hashes.views, b.stream_keys->bytes(), form_of(b.algorithm)};
}

chacha::Batch batch_of(const DeviceBatch& b) {
  return {b.views, b.first_tile, b.stream_keys->streams(b), b.messages, b.tiles, b.units, b.most_units};
}

chacha::Tags tags_of(const DeviceBatch& b, std::uint32_t* verdicts) {
  return {b.hashes.views,  b.hashes.first_chunk,  b.stream_keys->r(),        b.hashes.masks,
          b.hashes.chunks, b.hashes.chunk_blocks, b.hashes.work.most_blocks, verdicts};
}

StreamWork work_of(const DeviceBatch& b) { return {b.messages, b.units, b.most_units}; }

AeadKernel aead_kernel_of(const DeviceBatch& b) { return choose_aead(conditions_of(b.device), work_of(b)); }

void run_text(const DeviceBatch& b, const std::uint32_t* verdicts) {
  const StreamKernel kernel = choose_stream(conditions_of(b.device), work_of(b));
  chacha::add_key_streams(b.device, b.stream, kernel, batch_of(b), verdicts, {});
}

void run_whole(const DeviceBatch& b, std::uint32_t* verdicts) {
  const LengthOrder order(b);
  chacha::run_whole(b.device, b.stream, {source_of(b), tags_of(b, verdicts), order.get(), b.messages},
                    b.direction == Direction::encrypt, {});
}

}  // namespace

void StreamKeys::derive(const DeviceBatch& b, Block* masks) {
  const bool is_aead = b.algorithm.is_aead();
  if (is_aead) {
    r_memory_.emplace();
    const auto r = r_memory_->reserve_on_device<Block>(b.messages);
    r_memory_->allocate(b.stream);
    r_ = r_memory_->device(r);
  }
  const bool has_streams = !is_aead || aead_kernel_of(b) != AeadKernel::whole;
  if (has_streams) reserve_streams(b);
  chacha::prepare(b.device, b.stream, {source_of(b), b.messages, streams_, r_, masks});
}

const chacha::KeyStream* StreamKeys::streams(const DeviceBatch& b) {
  if (streams_ == nullptr) {
    reserve_streams(b);
    chacha::prepare(b.device, b.stream, {source_of(b), b.messages, streams_, nullptr, nullptr});
  }
  return streams_;
}

void StreamKeys::reserve_streams(const DeviceBatch& b) {
  stream_memory_.emplace();
  const auto streams = stream_memory_->reserve_on_device<chacha::KeyStream>(b.messages);
  stream_memory_->allocate(b.stream);
  streams_ = stream_memory_->device(streams);
}

void run_stream_cipher(const DeviceBatch& b, std::uint32_t* verdicts) {
  if (!b.algorithm.is_aead()) return run_text(b, nullptr);
  const bool encrypting = b.direction == Direction::encrypt;
  switch (aead_kernel_of(b)) {
    case AeadKernel::whole:
      return run_whole(b, verdicts);
    case AeadKernel::chunks:
      return chacha::run_chunks(b.device, b.stream, batch_of(b), tags_of(b, verdicts), encrypting);
    case AeadKernel::lanes:
      if (encrypting) run_text(b, nullptr);
      chacha::hash_by_lanes(b.device, b.stream, b.messages, tags_of(b, verdicts));
      if (!encrypting) run_text(b, verdicts);
  }
}

// Texts that are mostly as long as was assumed.
bool start_stream_cipher(const DeviceBatch& b, Speculation& speculation) {
  if (b.tiles == 0) return false;
  speculation.least_units = b.units - b.units / 8;
  if (!b.algorithm.is_aead()) {
    const StreamKernel kernel = choose_stream(conditions_of(b.device), work_of(b));
    speculation.most_units = kernel == StreamKernel::packed ? b.most_units : UINT64_MAX;
    chacha::add_key_streams(b.device, b.stream, kernel, batch_of(b), nullptr, speculation);
    return true;
  }
  if (aead_kernel_of(b) != AeadKernel::whole) return false;
  speculation.most_units = b.most_units;
  chacha::run_whole(b.device, b.stream, {source_of(b), tags_of(b, nullptr), nullptr, b.messages}, true, speculation);
  return true;
}

}  // namespace warpcipher::cuda
