// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/execution/message_batch.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "core/bytes.hpp"
#include "core/thread_pool.hpp"
#include "core/wipe.hpp"
#include "engine/cuda/aes/launches.hpp"
#include "engine/cuda/chacha/launches.hpp"
#include "engine/cuda/inputs/host_views.hpp"
#include "engine/cuda/inputs/keys.hpp"
#include "engine/cuda/inputs/texts.hpp"
#include "engine/cuda/runtime/check.hpp"
#include "engine/cuda/runtime/device.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "mode/ccm.hpp"
#include "mode/gcm.hpp"

namespace warpcipher::cuda {
namespace {

// J0 of a GCM message.
void make_first_counter(const Message& message, std::uint8_t (&counter)[16]) {
  const auto hash_key = [&] { return aes_key_state(*message.key).hash_key; };
  gf128::store(counter, gcm_first_counter(message.iv, message.iv_len, hash_key));
}

// GCM: E(J0), and the first counter of the text.
struct GcmStart {
  Block mask;
  Block counter;
};

GcmStart gcm_start_of(const Message& message) {
  std::uint8_t counter[16], mask[16];
  make_first_counter(message, counter);
  aes::encrypt_block(aes_key_state(*message.key).schedule, counter, mask);
  add_be32(counter, 1);
  const GcmStart found{to_block(mask, sizeof mask), to_block(counter, sizeof counter)};
  secure_wipe(mask, sizeof mask);
  return found;
}

// For so few the host is faster than a launch.
constexpr std::size_t most_masks_of_host = 8;

// The IV, or the first 16 bytes of it; J0 for GCM, Ctr0 for CCM.
Block first_block_of(const Message& message) {
  const Mode mode = message.algorithm().mode.id;
  std::uint8_t counter[16];
  if (mode == Mode::gcm) {
    make_first_counter(message, counter);
  } else if (mode == Mode::ccm) {
    ccm_counter(message.iv, message.iv_len, counter);
  } else {
    return to_block(message.iv, std::min<std::size_t>(message.iv_len, sizeof(Block)));
  }
  return to_block(counter, sizeof counter);
}

std::uint64_t tiles_of(std::uint64_t units) { return (units + tile_units - 1) / tile_units; }

}  // namespace

MessageBatch::MessageBatch(const MessageGroup& group, const Device& device, Stream stream, const Pieces* pieces)
    : group_(group),
      batch_{device, stream, group[0].algorithm(), group[0].direction},
      aes_keys_(device, stream, batch_.algorithm, batch_.direction),
      siv_keys_(device, stream, batch_.algorithm) {
  number_keys();
  measure();
  const std::size_t count = group.size();
  const std::size_t key_len = batch_.algorithm.key_len();
  const bool derived_on_host = batch_.is_aes() && keys_.size() <= most_keys_of_host;
  const bool is_lone_siv = batch_.is_gcm_siv() && count == 1;
  views_ = upload_.reserve<MessageView>(count);
  first_tile_ = upload_.reserve<std::uint64_t>(group.first_tile.size());
  if (is_lone_siv) siv_keys_.reserve(upload_, group[0]);
  if (derived_on_host) aes_keys_.reserve(upload_, keys_);
  key_bytes_ = upload_.reserve<std::uint8_t>(derived_on_host ? 0 : key_len * keys_.size());
  hash_views_ = upload_.reserve<HashView>(batch_.algorithm.is_aead() ? count : 0);
  first_chunk_ = upload_.reserve<std::uint64_t>(batch_.algorithm.is_aead() ? count + 1 : 0);
  aad_ = upload_.reserve<std::uint8_t>(aad_len_);
  if (pieces != nullptr) pieces_.emplace(*pieces, batch_).reserve(upload_);
  const bool has_masks = batch_.algorithm.is_aead() && !batch_.is_chacha();
  const bool masks_on_host = batch_.is_gcm() && derived_on_host && count <= most_masks_of_host;
  masks_ = masks_on_host ? upload_.reserve<Block>(count) : upload_.reserve_on_device<Block>(has_masks ? count : 0);
  if (masks_on_host) reserve_powers();
  const bool streams_on_host =
      batch_.is_chacha() && batch_.algorithm.is_aead() && !batch_.are_parts && count <= most_masks_of_host;
  if (streams_on_host) {
    const std::uint64_t blocks = batch_.hashes.work.blocks;
    stream_keys_.reserve(upload_, batch_.messages, blocks / chacha::chunk_blocks_for(device, blocks, count) + count);
  }
  if (pieces_) pieces_->reserve_on_device(upload_);
  upload_.allocate(stream);

  const auto keys = static_cast<std::uint32_t>(keys_.size());
  batch_.views = upload_.device(views_);
  batch_.first_tile = upload_.device(first_tile_);
  batch_.aes_keys = &aes_keys_;
  if (batch_.is_aes() && !derived_on_host) aes_keys_.take_bytes(upload_.device(key_bytes_), keys);
  batch_.des_keys = {upload_.device(key_bytes_), static_cast<std::uint32_t>(key_len), keys,
                     batch_.algorithm.inverse(batch_.direction)};
  stream_keys_.take_bytes(upload_.device(key_bytes_));
  batch_.stream_keys = &stream_keys_;
  batch_.siv_keys = &siv_keys_;
  batch_.plan = batch_.plan_of();

  fill_views();
  if (pieces_) pieces_->fill(upload_);
  for (std::size_t i = 0; masks_on_host && i < count; ++i) {
    const GcmStart start = gcm_start_of(group[i]);
    upload_.host(masks_)[i] = start.mask;
    upload_.host(views_)[i].start = start.counter;
  }
  std::copy(group.first_tile.begin(), group.first_tile.end(), upload_.host(first_tile_));
  for (std::uint32_t i = 0; streams_on_host && i < count; ++i) stream_keys_.fill(upload_, group[i], i);
  if (is_lone_siv) siv_keys_.fill(upload_);
  if (derived_on_host) aes_keys_.fill(upload_);
  for (std::size_t k = 0; !derived_on_host && k < keys_.size(); ++k) {
    std::copy_n(keys_[k]->bytes(), key_len, upload_.host(key_bytes_) + key_len * k);
  }
  if (batch_.algorithm.is_aead()) fill_hashes();
  upload_.send();
  if (!masks_on_host) encrypt_first_blocks(batch_, batch_.algorithm.is_aead() ? upload_.device(masks_) : nullptr);
  if (batch_.is_gcm()) batch_.hashes.hash_keys = aes_keys_.hash_keys();
}

void MessageBatch::number_keys() {
  KeyList keys;
  key_of_.reserve(group_.size());
  for (std::size_t i = 0; i < group_.size(); ++i) key_of_.push_back(keys.number(*group_[i].key));
  keys_ = keys.keys();
  if (keys_.size() == 1) batch_.only_key = keys_[0];
}

// Sets the values that are equal for all messages, or sums over them.
void MessageBatch::measure() {
  batch_.messages = static_cast<std::uint32_t>(group_.size());
  batch_.tiles = group_.first_tile.empty() ? 0 : group_.first_tile.back();
  batch_.is_ordered = true;
  batch_.in_place = false;
  batch_.is_aligned = true;
  batch_.computes_tags = group_[0].compute_tag;
  batch_.are_parts = group_[0].is_part;
  for (std::size_t i = 0; i < group_.size(); ++i) {
    const Message& message = group_[i];
    batch_.units += message.units();
    batch_.most_units = std::max<std::uint64_t>(batch_.most_units, message.units());
    batch_.in_place = batch_.in_place || message.in == message.out;
    batch_.is_aligned = batch_.is_aligned && is_aligned(view_of(message));
    if (!batch_.algorithm.is_aead()) continue;
    const std::uint64_t blocks = ghash::hash_view_of(message).blocks();
    batch_.hashes.work.blocks += blocks;
    batch_.hashes.work.most_blocks = std::max(batch_.hashes.work.most_blocks, blocks);
    aad_len_ += message.aad_len;
  }
  batch_.hashes.work.messages = group_.size();
  batch_.hashes.work.keys = batch_.is_gcm_siv() ? group_.size() : keys_.size();
  if (batch_.tiles > most_tiles) {
    throw Error(Status::engine_failure, batch_.algorithm.name, ": ", batch_.tiles,
                " tiles of 256 units in one batch, at most ", most_tiles, " can be run at once: cut the batch");
  }
}

void MessageBatch::fill_views() {
  ThreadPool::instance().parallel_for(group_.size(), messages_at_once, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      MessageView& view = upload_.host(views_)[i];
      view = view_of(group_[i]);
      view.start = first_block_of(group_[i]);
      view.key = key_of_[i];
    }
  });
}

void MessageBatch::fill_hashes() {
  const bool is_siv = batch_.is_gcm_siv();
  const ghash::Work work = batch_.hashes.work;
  const ghash::GhashAlgorithm algorithm = batch_.plan.ghash ? batch_.plan.ghash->chosen : ghash::GhashAlgorithm{};
  const std::uint64_t chunk_blocks = batch_.is_chacha()
                                         ? chacha::chunk_blocks_for(batch_.device, work.blocks, work.messages)
                                         : ghash::chunk_blocks_for(batch_.device, algorithm, work);
  std::uint64_t chunks = 0;
  std::size_t aad_offset = 0;
  for (std::size_t i = 0; i < group_.size(); ++i) {
    const Message& message = group_[i];
    HashView& view = upload_.host(hash_views_)[i];
    view = ghash::hash_view_of(message);
    view.aad = upload_.device(aad_) + aad_offset;
    view.chunk_blocks = chunk_blocks;
    view.key = is_siv ? static_cast<std::uint32_t>(i) : key_of_[i];
    if (is_siv && message.compute_tag) view.mask = to_block(message.iv + gcm_siv_nonce_len, full_tag_len);
    if (batch_.is_chacha() && message.iv_len > sizeof(Block)) {
      view.mask = to_block(message.iv + sizeof(Block), message.iv_len - sizeof(Block));  // XChaCha20
    }
    if (message.is_part) view.mask.words[3] = message.first_block;
    std::copy_n(message.aad, message.aad_len, upload_.host(aad_) + aad_offset);
    aad_offset += message.aad_len;
    upload_.host(first_chunk_)[i] = chunks;
    chunks += view.chunks();
  }
  upload_.host(first_chunk_)[group_.size()] = chunks;
  batch_.hashes = {upload_.device(hash_views_),
                   upload_.device(masks_),
                   nullptr,
                   upload_.device(first_chunk_),
                   aes_keys_.of_host(),
                   algorithm,
                   chunk_blocks,
                   chunks,
                   work};
  batch_.hashes.is_aligned = batch_.is_aligned;
  if (powers_for_ != algorithm) return;
  ghash::fill_powers_of_host(upload_.host(powers_), batch_.hashes, upload_.device(powers_));
  batch_.hashes.sums = upload_.device(sums_);
}

// Before other arrays that are not sent. The plan is not made yet; should it choose otherwise, they are not used.
void MessageBatch::reserve_powers() {
  const ghash::Work& work = batch_.hashes.work;
  const ghash::GhashAlgorithm algorithm = choose_ghash(conditions_of(batch_.device), work);
  const std::uint64_t chunk_blocks = ghash::chunk_blocks_for(batch_.device, algorithm, work);
  const std::size_t powers = ghash::powers_of_host(algorithm, work, chunk_blocks);
  if (powers == 0) return;
  powers_for_ = algorithm;
  powers_ = upload_.reserve<gf128::Element>(powers);
  sums_ = upload_.reserve_on_device<gf128::Element>(work.blocks / chunk_blocks + work.messages);  // or fewer
}

void MessageBatch::run_pieces(std::uint32_t* verdicts) const { pieces_->execute(upload_, batch_, verdicts); }

void MessageBatch::run(std::span<Status> statuses) const {
  if (!batch_.checks_tags()) return execute(batch_, nullptr);
  std::vector<std::uint32_t> verdicts(group_.size());
  const StreamBuffer device(verdicts.size() * sizeof verdicts[0], batch_.stream, Wiping::needless);
  auto* const words = reinterpret_cast<std::uint32_t*>(device.data());
  execute(batch_, words);
  check(cudaMemcpyAsync(verdicts.data(), words, device.size(), cudaMemcpyDeviceToHost, native(batch_.stream)),
        "copy the verdicts of tags from the device");
  check(cudaStreamSynchronize(native(batch_.stream)), "wait for the verdicts of tags");
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    statuses[group_.numbers[i]] = verdicts[i] != 0 ? Status::ok : Status::invalid_tag;
  }
}

namespace {

// GCM, in the order of execute(): if a tag is checked first, the text comes last.
Status run_gcm_message(const Message& message, const LaunchPlan& plan, const Device& device, Stream stream) {
  const GcmStart first = gcm_start_of(message);
  const bool has_text = message.in_len != 0;
  const ghash::GhashAlgorithm algorithm = plan.ghash->chosen;
  const auto run_text = [&](const std::uint32_t* verdict) {
    if (has_text) lane_table::run_one(device, stream, plan.text->chosen, message, first.counter, verdict);
  };
  if (message.direction == Direction::encrypt || message.compute_tag) {
    if (message.direction == Direction::encrypt) run_text(nullptr);
    ghash::authenticate_one(device, stream, algorithm, message, first.mask, nullptr);
    if (message.direction == Direction::decrypt) run_text(nullptr);
    return Status::ok;
  }
  std::uint32_t verdict = 0;
  const StreamBuffer word(sizeof verdict, stream, Wiping::needless);
  auto* const on_device = reinterpret_cast<std::uint32_t*>(word.data());
  ghash::authenticate_one(device, stream, algorithm, message, first.mask, on_device);
  run_text(on_device);
  check(cudaMemcpyAsync(&verdict, on_device, sizeof verdict, cudaMemcpyDeviceToHost, native(stream)),
        "copy the verdict of a tag from the device");
  check(cudaStreamSynchronize(native(stream)), "wait for the verdict of a tag");
  return verdict != 0 ? Status::ok : Status::invalid_tag;
}

}  // namespace

Status run_message(const Message& message, const Device& device, Stream stream) {
  const Algorithm& algorithm = message.algorithm();
  BatchFacts facts{algorithm, message.direction};
  facts.units = facts.most_units = message.units();
  facts.tiles = tiles_of(facts.units);
  facts.is_by_itself = facts.has_only_key = true;
  if (algorithm.mode.id == Mode::gcm) facts.hashes = ghash::work_of(message);
  const LaunchPlan plan = plan_launches(device, facts);
  if (plan.text_launch == TextLaunch::by_itself) {
    if (algorithm.mode.id == Mode::gcm) return run_gcm_message(message, plan, device, stream);
    if (facts.units != 0) {
      lane_table::run_one(device, stream, plan.text->chosen, message, to_block(message.iv, message.iv_len), nullptr);
    }
    return Status::ok;
  }
  constexpr std::uint32_t number = 0;
  const std::uint64_t first_tile[] = {0, facts.tiles};
  const bool is_parallel = algorithm.parallel(message.direction);
  const MessageGroup group{{&message, 1},
                           {&number, 1},
                           is_parallel ? std::span<const std::uint64_t>(first_tile) : std::span<const std::uint64_t>()};
  Status status = Status::ok;
  MessageBatch(group, device, stream).run({&status, 1});
  return status;
}

// --- Removes the padding of messages that the host knows one by one.
void take_padding_off(std::span<const Message* const> messages, std::span<std::uint32_t> lengths, Stream stream) {
  BufferLocator locator;
  locator.add(messages[0]->out, "out");
  const Device& device = locator.device();
  const DeviceScope scope(device.index);
  Upload upload;
  const auto views = upload.reserve<MessageView>(messages.size());
  upload.allocate(stream);
  for (std::size_t i = 0; i < messages.size(); ++i) upload.host(views)[i] = view_of(*messages[i]);
  upload.send();
  const StreamBuffer found(lengths.size_bytes(), stream, Wiping::needless);
  auto* const words = reinterpret_cast<std::uint32_t*>(found.data());
  take_padding_off(device, stream, upload.device(views), static_cast<std::uint32_t>(messages.size()), words);
  check(cudaMemcpyAsync(lengths.data(), words, found.size(), cudaMemcpyDeviceToHost, native(stream)),
        "copy the lengths of paddings from the device");
  check(cudaStreamSynchronize(native(stream)), "wait for the lengths of paddings");
}

}  // namespace warpcipher::cuda
