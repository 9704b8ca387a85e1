// SPDX-License-Identifier: Apache-2.0
// Messages whose texts lie in pieces. The key stream of a piece is that of the message from the piece's place in the
// text on. So each piece is a message of the cipher's own mode, CTR or ChaCha20, whose view has that counter, and the
// kernels of those modes read or write it where it lies. Tags are those of the whole ciphertexts.
#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "engine/cuda/execution/device_batch.hpp"
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
  const std::uint32_t* verdicts;  // nullptr: all are good
  std::uint8_t* nowhere;          // takes the pieces of messages with wrong tags
  std::uint64_t len;              // of a piece
  std::uint64_t count;            // of pieces of all messages
  std::uint32_t pieces;           // of a message
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
  const bool is_good = p.verdicts == nullptr || p.verdicts[number] != 0;
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

void execute_in_pieces(const DeviceBatch& b, const Pieces& pieces, std::uint32_t* verdicts) {
  const bool encrypting = b.direction == Direction::encrypt;
  const auto of_message = static_cast<std::uint32_t>(pieces.places.size());
  const std::uint64_t count = std::uint64_t{of_message} * b.messages;
  DeviceBatch text{b.device, b.stream, algorithm_of_text(b.algorithm), b.direction};
  const std::uint64_t units = pieces.len / text.algorithm.unit_len();
  text.lacks_ends = leaves_ends(conditions_of(b.device), text.algorithm.mode.id, count);

  Upload upload;
  const auto places = upload.reserve<PiecePlace>(of_message);
  const auto blocks = upload.reserve<std::uint64_t>(b.messages);
  const auto tiles = upload.reserve<std::uint64_t>(of_message + std::size_t{1});
  const auto heads = upload.reserve<std::uint8_t>(pieces.heads.size());
  const auto nowhere = upload.reserve_on_device<std::uint8_t>(encrypting ? 0 : pieces.len);
  const auto views = upload.reserve_on_device<MessageView>(count);
  const auto first_tile = upload.reserve_on_device<std::uint64_t>(count + 1);
  upload.allocate(b.stream, encrypting ? Wiping::needless : Wiping::needed);
  std::copy(pieces.places.begin(), pieces.places.end(), upload.host(places));
  std::copy(pieces.blocks.begin(), pieces.blocks.end(), upload.host(blocks));
  std::copy(pieces.heads.begin(), pieces.heads.end(), upload.host(heads));
  std::uint64_t tiles_of_text = 0, ends = 0, addresses = 0;
  for (std::uint32_t i = 0; i < of_message; ++i) {
    const std::uint64_t lead = (2 + pieces.len / 16 * i) % tile_units;  // GCM's text begins with counter 2
    const std::uint64_t in_tiles =
        text.lacks_ends ? units_before_end(pieces.len, static_cast<std::uint32_t>(lead)) : units;
    upload.host(tiles)[i] = tiles_of_text;
    tiles_of_text += (in_tiles + tile_units - 1) / tile_units;
    ends += units - in_tiles;
    addresses |= reinterpret_cast<std::uintptr_t>(pieces.places[i].first);
    addresses |= static_cast<std::uint64_t>(pieces.places[i].step);
  }
  upload.host(tiles)[of_message] = tiles_of_text;
  upload.send();
  if (count >= UINT32_MAX || tiles_of_text * b.messages > most_tiles) {
    throw Error(Status::engine_failure, std::to_string(count) + " pieces of texts in one batch: cut it");
  }
  PieceViews of_pieces{b.views,
                       upload.device(places),
                       upload.device(blocks),
                       upload.device(tiles),
                       upload.device(heads),
                       verdicts,
                       upload.device(nowhere),
                       pieces.len,
                       count,
                       of_message,
                       static_cast<std::uint32_t>(pieces.heads.size() / b.messages),
                       encrypting,
                       b.is_aes(),
                       upload.device(views),
                       upload.device(first_tile)};
  text.views = of_pieces.views;
  text.first_tile = of_pieces.first_tile;
  text.messages = static_cast<std::uint32_t>(count);
  text.tiles = tiles_of_text * b.messages;
  text.units = units * count;
  text.most_units = units;
  text.end_units = ends * b.messages;
  text.in_place = false;
  text.is_aligned = b.is_aligned && addresses % 16 == 0;
  text.only_key = b.only_key;
  text.aes_keys = b.aes_keys;
  StreamKeys stream_keys;
  stream_keys.take_bytes(b.stream_keys->bytes());
  text.stream_keys = &stream_keys;
  text.plan = text.plan_of();

  // ChaCha20-Poly1305 in one pass.
  if (encrypting && !b.is_aes() && text.is_aligned) {
    of_pieces.views = nullptr;
    of_pieces.pieces = 1;
    of_pieces.count = b.messages;
    launch(&make_piece_views, configuration_of_lanes(b.device, b.messages, threads, 8), b.stream, of_pieces);
    return gather_stream(b, {of_pieces.places, of_pieces.blocks, static_cast<std::uint32_t>(units)});
  }
  if (!encrypting) run_tags(b, verdicts);
  launch(&make_piece_views, configuration_of_lanes(b.device, count + 1, threads, 8), b.stream, of_pieces);
  execute(text, nullptr);
  if (encrypting) run_tags(b, nullptr);
}

}  // namespace warpcipher::cuda
