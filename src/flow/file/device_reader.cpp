// SPDX-License-Identifier: Apache-2.0
// To device memory: see read_chunks.hpp.
#include <algorithm>
#include <optional>
#include <vector>

#include "dispatch/run.hpp"
#include "flow/file/file_piece.hpp"
#include "flow/file/joint.hpp"
#include "flow/file/reading.hpp"
#include "flow/file/work.hpp"
#include "flow/slot_memory.hpp"

namespace warpcipher {
namespace {

// One piece on its way to the device: page-locked memory that it is read into, as much memory of the device, and the
// stream that orders its work.
class FileSlot {
 public:
  // joint: that decrypts pieces of which all is wanted; null: each is decrypted by itself.
  FileSlot(DeviceEngine& engine, std::string_view name, Reading& reading, const PieceCheck& piece_check, Joint* joint,
           std::size_t room)
      : name_(name),
        engine_(engine),
        reading_(reading),
        chunks_(reading.chunks()),
        piece_check_(piece_check),
        joint_(joint),
        room_(room),
        slot_(engine) {}

  // Reads the next piece and starts its copy; false when there is none, or it failed.
  bool load(const auto& settle_others) {
    if (!reading_.next(piece_)) return false;
    reading_.naming(piece_, [&] { reserve(); });
    if (!reading_.read(piece_, pinned_)) return false;
    if (const auto failure = piece_check_.find_bad(piece_, pinned_)) {
      reading_.fail(*failure);
      return false;
    }
    if (is_joined() && !joint_->has_room(piece_)) {
      settle_others();  // the window that has the room may need them
      if (!joint_->wait_for_room(piece_)) return false;
    }
    reading_.naming(piece_, [&] {
      std::uint8_t* const to = is_joined()          ? joint_->place(piece_)
                               : chunks_.is_plain() ? chunks_.out.data() + piece_.items.front().place
                                                    : memory_;
      engine_.copy_to_device(to, pinned_, piece_.len, slot_.stream());
    });
    is_loaded_ = true;
    return true;
  }

  // Decrypts what the slot holds, if anything, and returns when it is where it belongs; or leaves it to `joint`. Where
  // it fails the thread continues: the first chunk that fails is reported.
  bool settle() {
    if (!is_loaded_) return true;
    reading_.naming(piece_, [&] {
      if (is_joined() || chunks_.is_plain()) {
        slot_.wait();
      } else {
        decrypt();
      }
    });
    is_loaded_ = false;
    if (is_joined()) joint_->add(piece_, pinned_);
    return true;
  }

 private:
  bool is_joined() const { return joint_ != nullptr && !piece_.is_partial; }

  void decrypt() {
    const Stream stream = slot_.stream();
    // Scratch of chunks of which a part is wanted: it is wiped, whatever happens.
    slot_.set_secret(memory_, piece_.is_partial ? piece_.len : 0);
    results_.assign(piece_.items.size(), {});
    const std::span<std::uint8_t> memory{memory_, piece_.len};
    run_columns(name_,
                columns_.make(chunks_, Direction::decrypt, piece_.items, memory,
                              piece_.is_partial ? memory : chunks_.out, ivs_in_file(), piece_.is_partial),
                results_, stream);
    reading_.are_right(results_, piece_.items);
    if (piece_.is_partial) {
      for (const FilePiece::Item& item : piece_.items) {
        if (chunks_.take(item.chunk) == 0) continue;
        engine_.copy_on_device(chunks_.out.data() + item.place, memory_ + item.at + chunks_.skip(item.chunk),
                               chunks_.take(item.chunk), stream);
      }
      engine_.clear(memory_, piece_.len, stream);
    }
    slot_.wait();
    slot_.set_secret(memory_, 0);
  }

  // The IVs of the piece's chunks; empty where they are not in the file.
  std::span<const std::uint8_t> ivs_in_file() {
    ivs_.clear();
    if (!chunks_.has_iv_in_file()) return {};
    for (const FilePiece::Item& item : piece_.items) {
      const std::uint8_t* const iv = iv_of(chunks_, item, pinned_);
      ivs_.insert(ivs_.end(), iv, iv + chunks_.iv_len);
    }
    return ivs_;
  }

  void reserve() {
    if (pinned_ == nullptr) pinned_ = slot_.pinned(room_);
    if (chunks_.is_plain()) return slot_.set_secret(pinned_, piece_.len);
    if (memory_ == nullptr && !is_joined()) memory_ = slot_.on_device(room_);
  }

  const std::string_view name_;
  DeviceEngine& engine_;
  Reading& reading_;
  const FileChunks& chunks_;
  PieceCheck piece_check_;
  Joint* const joint_;
  const std::size_t room_;
  SlotMemory slot_;
  std::uint8_t* pinned_ = nullptr;
  std::uint8_t* memory_ = nullptr;  // of the device
  FilePiece piece_;
  bool is_loaded_ = false;
  PieceColumns columns_;
  std::vector<std::uint8_t> ivs_;
  std::vector<Result> results_;
};

}  // namespace

std::optional<ReadFailure> read_to_device(std::string_view name, DeviceEngine& engine, const FileChunks& chunks,
                                          const ChunkRooms& rooms, Stream stream, const ReadOptions& options) {
  const std::uint64_t total = rooms.total();
  const bool is_short = options.piece_len == 0 && total <= most_short_len && rooms.are_whole();
  const std::size_t piece_len = options.piece_len != 0 ? options.piece_len
                                : is_short             ? short_piece_len
                                                       : slot_len_for(total, options.threads);
  const std::size_t room = rooms.for_piece(std::min(piece_len, most_device_chunk_len));
  const std::size_t threads = threads_with_slots(options.threads, total, room);
  const JointShape shape = chunks.is_plain() ? JointShape{} : joint_shape(rooms, is_short, room, threads);
  Reading reading(chunks, options, room, shape.windows > 1 ? shape.window_len : UINT64_MAX);
  const PieceCheck piece_check(chunks);
  // The caller's work on the stream may still use `out`. On this thread: the stream may be its own default one.
  engine.wait(stream);
  std::optional<Joint> joint;
  if (shape.windows != 0) joint.emplace(name, engine, reading, shape);
  Joint* const joint_or_null = joint ? &*joint : nullptr;
  reading.run_slots<FileSlot>(threads, engine, name, reading, piece_check, joint_or_null, room);
  if (joint) joint->decrypt_rest();
  return reading.failure();
}

}  // namespace warpcipher
