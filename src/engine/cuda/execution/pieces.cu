// SPDX-License-Identifier: Apache-2.0
// Messages whose texts lie in pieces. The key stream of a piece is the message's from the piece's place in the
// text on. So each piece is a message of the cipher's own mode, CTR or ChaCha20, whose view has that counter, and the
// kernels of those modes read or write it where it lies. Tags are those of the whole ciphertexts. ChaCha20-Poly1305
// with pieces at multiples of 16 needs no such views: one pass looks pieces up.
#include "engine/cuda/execution/pieces.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "engine/cuda/ghash/ghash.hpp"
#include "engine/cuda/runtime/block.cuh"
#include "engine/cuda/runtime/launch.hpp"

namespace warpcipher::cuda {
namespace {

constexpr std::uint32_t threads = 256;

// Pointers are to device memory.
struct PieceViews {
  const MessageView* messages;
  const PiecePlace* places;
  const std::uint64_t* blocks;
  const std::uint64_t* tiles;  // of a text before each of its pieces, and at the end of all
  const std::uint8_t* heads;
  const std::uint32_t* verdicts;
  std::uint8_t* nowhere;  // takes the pieces of messages with wrong tags; nullptr: their own places do
  std::uint64_t len;      // of a piece
  std::uint64_t count;    // of pieces of all messages
  std::uint32_t pieces;   // of a message
  std::uint32_t head_len;
  bool encrypting;
  bool is_aes;

  // To be written, as the prefix sums of their tiles; nullptr: only the heads are.
  MessageView* views;
  std::uint64_t* first_tile;
};

// A counter of GCM's text, of 32 bits, does not wrap, so that it is one of CTR's.
__device__ __forceinline__ Block start_of(const PieceViews& p, const MessageView& message, std::uint64_t offset) {
  const Block& start = message.start;
  if (!p.is_aes) return {{1 + static_cast<std::uint32_t>(offset / 64), start.words[0], start.words[1], start.words[2]}};
  Block counter = start;
  counter.words[3] = byte_swap(byte_swap(start.words[3]) + static_cast<std::uint32_t>(offset / 16));
  return counter;
}

__device__ __forceinline__ MessageView view_of(const PieceViews& p, std::uint64_t number, std::uint32_t piece) {
  const MessageView& message = p.messages[number];
  const std::uint64_t offset = p.len * piece;
  const PiecePlace& place = p.places[piece];
  std::uint8_t* const at = place.first + static_cast<std::int64_t>(p.blocks[number]) * place.step;
  const bool is_good = p.nowhere == nullptr || p.verdicts[number] != 0;
  MessageView view{};
  view.in = p.encrypting ? at : message.in + offset;
  view.out = p.encrypting ? message.out + offset : is_good ? at : p.nowhere;
  view.in_len = view.out_len = p.len;
  view.units = p.len / (p.is_aes ? 16 : 64);
  view.start = start_of(p, message, offset);
  view.key = message.key;
  return view;
}

// A piece a lane; the first of each message writes the head.
__global__ void __launch_bounds__(threads) make_piece_views(const __grid_constant__ PieceViews p) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i <= p.count;
       i += std::uint64_t{gridDim.x} * threads) {
    const std::uint64_t number = i / p.pieces;
    const auto piece = static_cast<std::uint32_t>(i % p.pieces);
    if (p.views != nullptr) p.first_tile[i] = number * p.tiles[p.pieces] + p.tiles[piece];
    if (i == p.count) break;
    if (p.views != nullptr) p.views[i] = view_of(p, number, piece);
    if (piece != 0) continue;
    for (std::uint32_t b = 0; b < p.head_len; ++b) {
      global(p.messages[number].out)[static_cast<std::int64_t>(b) - p.head_len] = p.heads[p.head_len * number + b];
    }
  }
}

// A block of threads a message.
__global__ void __launch_bounds__(threads) wipe_forged_pieces(const __grid_constant__ PieceViews p) {
  for (std::uint64_t number = blockIdx.x; number < p.count / p.pieces; number += gridDim.x) {
    if (p.verdicts[number] != 0) continue;
    for (std::uint32_t piece = 0; piece < p.pieces; ++piece) {
      auto* const words = reinterpret_cast<uint4*>(global(view_of(p, number, piece).out));
      for (std::uint64_t i = threadIdx.x; i < p.len / sizeof(uint4); i += threads) words[i] = {};
    }
  }
}

// AES in CTR mode, or ChaCha20.
const Algorithm& algorithm_of_text(const Algorithm& aead) {
  const Mode mode = aead.mode.id == Mode::gcm ? Mode::ctr : Mode::stream;
  const auto all = algorithms();
  return *std::find_if(all.begin(), all.end(), [&](const Algorithm& algorithm) {
    return algorithm.cipher.id == aead.cipher.id && algorithm.mode.id == mode;
  });
}

void run_tags(const DeviceBatch& b, std::uint32_t* verdicts) {
  b.is_gcm() ? ghash::authenticate(b.device, b.stream, b.hashes, verdicts) : run_stream_tags(b, verdicts);
}

}  // namespace

PieceArrays::PieceArrays(const Pieces& pieces, const DeviceBatch& b)
    : pieces_(pieces),
      encrypting_(b.direction == Direction::encrypt),
      messages_(b.messages),
      of_message_(static_cast<std::uint32_t>(pieces.places.size())),
      count_(std::uint64_t{of_message_} * messages_),
      algorithm_(algorithm_of_text(b.algorithm)),
      units_(pieces.len / algorithm_.unit_len()),
      lacks_ends_(leaves_ends(conditions_of(b.device), algorithm_.mode.id, count_)) {
  std::uint64_t addresses = 0;  // all of them, by OR
  for (const PiecePlace& place : pieces.places) {
    addresses |= reinterpret_cast<std::uintptr_t>(place.first) | static_cast<std::uint64_t>(place.step);
  }
  is_aligned_ = b.is_aligned && addresses % 16 == 0;
  in_one_pass_ = !b.is_aes() && is_aligned_;
}

void PieceArrays::reserve(Upload& upload) {
  places_ = upload.reserve<PiecePlace>(of_message_);
  blocks_ = upload.reserve<std::uint64_t>(messages_);
  tiles_ = upload.reserve<std::uint64_t>(of_message_ + std::size_t{1});
  heads_ = upload.reserve<std::uint8_t>(pieces_.heads.size());
}

void PieceArrays::reserve_on_device(Upload& upload) {
  if (in_one_pass_) return;
  nowhere_ = upload.reserve_on_device<std::uint8_t>(encrypting_ ? 0 : pieces_.len);
  views_ = upload.reserve_on_device<MessageView>(count_);
  first_tile_ = upload.reserve_on_device<std::uint64_t>(count_ + 1);
}

void PieceArrays::fill(Upload& upload) {
  std::copy(pieces_.places.begin(), pieces_.places.end(), upload.host(places_));
  std::copy(pieces_.blocks.begin(), pieces_.blocks.end(), upload.host(blocks_));
  std::copy(pieces_.heads.begin(), pieces_.heads.end(), upload.host(heads_));
  for (std::uint32_t i = 0; i < of_message_; ++i) {
    const std::uint64_t lead = (2 + pieces_.len / 16 * i) % tile_units;  // GCM's text begins with counter 2
    const std::uint64_t in_tiles =
        lacks_ends_ ? units_before_end(pieces_.len, static_cast<std::uint32_t>(lead)) : units_;
    upload.host(tiles_)[i] = tiles_of_text_;
    tiles_of_text_ += (in_tiles + tile_units - 1) / tile_units;
    ends_of_text_ += units_ - in_tiles;
  }
  upload.host(tiles_)[of_message_] = tiles_of_text_;
  if (count_ >= UINT32_MAX || tiles_of_text_ * messages_ > most_tiles) {
    throw Error(Status::engine_failure, std::to_string(count_) + " pieces of texts in one batch: cut it");
  }
}

void PieceArrays::execute(const Upload& upload, const DeviceBatch& b, std::uint32_t* verdicts) const {
  PieceViews of_pieces{b.views,
                       upload.device(places_),
                       upload.device(blocks_),
                       upload.device(tiles_),
                       upload.device(heads_),
                       verdicts,
                       encrypting_ || in_one_pass_ ? nullptr : upload.device(nowhere_),
                       pieces_.len,
                       count_,
                       of_message_,
                       static_cast<std::uint32_t>(pieces_.heads.size() / messages_),
                       encrypting_,
                       b.is_aes(),
                       in_one_pass_ ? nullptr : upload.device(views_),
                       upload.device(first_tile_)};
  const auto make_views = [&] {
    launch(&make_piece_views, configuration_of_lanes(b.device, of_pieces.count + 1, threads, 8), b.stream, of_pieces);
  };
  if (in_one_pass_) {
    run_stream_pieces(b, {of_pieces.places, of_pieces.blocks, static_cast<std::uint32_t>(units_)}, verdicts);
    if (!encrypting_) {
      return launch(&wipe_forged_pieces, {std::min(messages_, 8 * b.device.multiprocessors), threads}, b.stream,
                    of_pieces);
    }
    of_pieces.pieces = 1;
    of_pieces.count = messages_;
    return make_views();
  }
  DeviceBatch text{b.device, b.stream, algorithm_, b.direction};
  text.views = of_pieces.views;
  text.first_tile = of_pieces.first_tile;
  text.messages = static_cast<std::uint32_t>(count_);
  text.tiles = tiles_of_text_ * messages_;
  text.units = units_ * count_;
  text.most_units = units_;
  text.end_units = ends_of_text_ * messages_;
  text.lacks_ends = lacks_ends_;
  text.in_place = false;
  text.is_aligned = is_aligned_;
  text.only_key = b.only_key;
  text.aes_keys = b.aes_keys;
  StreamKeys stream_keys;
  stream_keys.take_bytes(b.stream_keys->bytes());
  text.stream_keys = &stream_keys;
  text.plan = text.plan_of();
  if (!encrypting_) run_tags(b, verdicts);
  make_views();
  cuda::execute(text, nullptr);
  if (encrypting_) run_tags(b, nullptr);
}

}  // namespace warpcipher::cuda
