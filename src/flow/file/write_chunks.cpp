// SPDX-License-Identifier: Apache-2.0
#include "flow/file/write_chunks.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "dispatch/run.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"
#include "flow/file/read_chunks.hpp"
#include "flow/file/work.hpp"
#include "flow/slot_memory.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t load_alignment = 16;  // what GPUs load at once

void check_entries(const char* what, std::size_t got, std::size_t expected) {
  if (got == expected) return;
  refuse(what, " has ", got, " entries, expected ", expected);
}

void check(const ChunksToWrite& c) {
  check_sealed_chunks(c);
  if (!c.heads.empty() || !c.aad.empty()) refuse("a device writes chunks without heads and associated data");
  const Algorithm& algorithm = c.algorithm();
  if (!algorithm.is_aead()) refuse(algorithm.name, " authenticates nothing: expected an AEAD");
  check_entries("ivs", c.ivs.size(), c.count * c.iv_len);
  if (!c.tags.empty()) check_entries("tags", c.tags.size(), c.count * c.tag_len);
  std::uint64_t text_len = 0, parts_len = 0;
  for (std::size_t i = 0; i < c.count; ++i) {
    const std::string chunk = "chunk " + std::to_string(i);
    if (c.lengths[i] > most_device_chunk_len || c.lengths[i] + c.tag_len > most_device_chunk_len) {
      refuse(chunk, " has ", c.lengths[i], " bytes, and with its tag one that a device encrypts has ",
             most_device_chunk_len, " at most");
    }
    if (c.file_offsets[i] > most_offset) refuse(chunk, " lies beyond byte 2^62 of the file");
    text_len += c.lengths[i];
  }
  for (const TextPart& part : c.parts) {
    check_buffer_len("a part", part.len);
    parts_len = std::min(parts_len + part.len, most_offset);
  }
  if (parts_len != text_len) {
    refuse("the parts have ", parts_len, " bytes, and the chunks take ", text_len);
  }
}

// Texts that lie in several places of host and device memory.
class TextParts {
 public:
  // The parts are borrowed.
  explicit TextParts(std::span<const TextPart> parts) : parts_(parts) {
    for (const TextPart& part : parts) {
      begins_.push_back(size_);
      size_ += part.len;
    }
  }

  std::uint64_t size() const { return size_; }

  // Calls body(memory, data, len) for the bytes of a range, part by part. The text has the range.
  template <class Body>
  void for_range(std::uint64_t begin, std::uint64_t len, Body&& body) const {
    if (len == 0) return;
    auto at = static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin()) - 1;
    for (; len != 0; ++at) {
      const TextPart& part = parts_[at];
      const std::uint64_t skip = begin - begins_[at];
      const std::uint64_t taken = std::min(len, part.len - skip);
      if (taken != 0) body(part.memory, part.data + skip, static_cast<std::size_t>(taken));
      begin += taken;
      len -= taken;
    }
  }

 private:
  const std::span<const TextPart> parts_;
  std::vector<std::uint64_t> begins_;
  std::uint64_t size_ = 0;
};

bool is_in_memory(int descriptor) {
  struct statfs system {};
  struct stat file {};
  return fstatfs(descriptor, &system) == 0 && system.f_type == TMPFS_MAGIC && fstat(descriptor, &file) == 0 &&
         S_ISREG(file.st_mode);
}

// The file's memory, where it has some: a tmpfs. write() takes one lock for the whole of such a file, so that threads
// wait for each other: 3.3 GB/s with any number of them, and 6.9 by a mapping with 16 (Xeon, 2 GiB). Its pages are
// there before it is mapped: a full file system is an error, not a signal. On a disk the disk bounds both.
class MappedFile {
 public:
  // Not mapped where that is of no use. size: of the file, which becomes no longer.
  MappedFile(int descriptor, std::uint64_t size) {
    if (size == 0 || !is_in_memory(descriptor)) return;
    if (const int error = posix_fallocate(descriptor, 0, static_cast<off_t>(size)); error != 0) {
      if (error == ENOSPC) error_ = error;
      return;
    }
    void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) return;  // a descriptor that cannot be read
    memory_ = static_cast<std::uint8_t*>(memory);
    size_ = size;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (memory_ != nullptr) munmap(memory_, size_);
  }

  std::uint8_t* memory() const { return memory_; }  // null where it is not mapped
  int error() const { return error_; }              // errno: no room

 private:
  std::uint8_t* memory_ = nullptr;
  std::uint64_t size_ = 0;
  int error_ = 0;
};

class FileTarget {
 public:
  // size: of all that is written. There may be a failure from the beginning on: no room.
  FileTarget(int descriptor, std::uint64_t size, FailingWork<WriteFailure>& work)
      : descriptor_(descriptor), mapped_(descriptor, size), work_(work) {
    if (mapped_.error() != 0) work.fail({size, mapped_.error()});
  }

  // From any thread of `work`. False, and the work stops, where not all could be written.
  bool write(const std::uint8_t* data, std::size_t len, std::uint64_t position) {
    if (mapped_.memory() != nullptr) {
      std::copy_n(data, len, mapped_.memory() + position);
      return true;
    }
    const auto some = [&](std::size_t done, std::size_t left) {
      return pwrite(descriptor_, data + done, left, static_cast<off_t>(position + done));
    };
    const std::size_t done = move_all(len, some, [&] { work_.check(true); });
    if (done == len) return true;
    work_.fail({position + done, errno != 0 ? errno : ENOSPC});
    return false;
  }

 private:
  const int descriptor_;
  const MappedFile mapped_;
  FailingWork<WriteFailure>& work_;
};

// A part of the text that goes to the file at once, and the chunks that it is, where it is encrypted.
struct WrittenPiece {
  std::size_t first = 0, count = 0;
  std::uint64_t text_begin = 0;  // in the parts, joined
  std::size_t text_len = 0;
  std::size_t len = 0;  // in a slot: of ciphertexts and tags, or of the text
};

// State that the threads of one call share.
class Writing : public FailingWork<WriteFailure> {
 public:
  // chunks: null: the text is written as it is. size: of the file, at the end of what is written. room: of a piece.
  Writing(int descriptor, std::span<const TextPart> parts, const ChunksToWrite* chunks, std::uint64_t size,
          std::size_t room, const WriteOptions& options)
      : FailingWork(options.check), parts_(parts), chunks_(chunks), room_(room), target_(descriptor, size, *this) {}

  const TextParts& parts() const { return parts_; }
  const ChunksToWrite* chunks() const { return chunks_; }
  FileTarget& target() { return target_; }

  // The room of a chunk in a slot. Tags that lie elsewhere in the file leave gaps, and the next chunk is aligned.
  static std::size_t room_of(const ChunksToWrite& c, std::size_t i) {
    const std::size_t len = c.lengths[i] + c.tag_len;
    return c.tags.empty() ? len : (len + load_alignment - 1) / load_alignment * load_alignment;
  }

  // The next piece for this thread; false when there is none, or something failed.
  bool next(WrittenPiece& piece) {
    if (!goes_on()) return false;
    const std::lock_guard lock(mutex_);
    piece = {next_, 0, text_begin_, 0, 0};
    if (chunks_ == nullptr) {
      piece.len = piece.text_len =
          static_cast<std::size_t>(std::min<std::uint64_t>(room_, parts_.size() - text_begin_));
    }
    while (chunks_ != nullptr && next_ < chunks_->count) {
      const std::size_t room = room_of(*chunks_, next_);
      if (room > room_ - piece.len) break;
      piece.len += room;
      piece.text_len += chunks_->lengths[next_];
      ++piece.count;
      ++next_;
    }
    text_begin_ += piece.text_len;
    return piece.count != 0 || piece.len != 0;
  }

  // Does the work, unless there is no room for the file. Returns what failed.
  template <class Body>
  std::optional<WriteFailure> run(std::size_t threads, Body&& body) {
    if (!failure()) FailingWork::run(threads, body);
    return failure();
  }
  template <class Slot, class... More>
  std::optional<WriteFailure> run_slots(std::size_t threads, DeviceEngine& engine, More&... more) {
    if (!failure()) FailingWork::run_slots<Slot>(threads, engine, more...);
    return failure();
  }

 private:
  const TextParts parts_;
  const ChunksToWrite* const chunks_;
  const std::size_t room_;
  FileTarget target_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::uint64_t text_begin_ = 0;
};

// One piece on its way to the file: page-locked memory that it is written from, and the stream that orders its work.
// Texts are gathered in device memory, and encrypted to another block there.
class WriteSlot {
 public:
  WriteSlot(DeviceEngine& engine, std::string_view name, Writing& writing, std::size_t room)
      : name_(name), engine_(engine), writing_(writing), chunks_(writing.chunks()), room_(room), slot_(engine) {}

  // Takes the next piece and starts its way to the slot; false when there is none.
  bool load(const auto&) {
    if (!writing_.next(piece_)) return false;
    if (chunks_ == nullptr) {
      if (pinned_ == nullptr) pinned_ = slot_.pinned(room_);
      slot_.set_secret(pinned_, piece_.len);
      gather(pinned_, Memory::host);
    } else {
      naming_chunks(piece_.first, piece_.first + piece_.count - 1, [&] {
        reserve();
        encrypt();
      });
    }
    is_loaded_ = true;
    return true;
  }

  // Writes what the slot holds, if anything; false where that failed.
  bool settle() {
    if (!is_loaded_) return true;
    is_loaded_ = false;
    slot_.wait();
    return chunks_ == nullptr ? writing_.target().write(pinned_, piece_.len, piece_.text_begin) : write_chunks();
  }

 private:
  // Copies the text of the piece to one place.
  void gather(std::uint8_t* to, Memory place) {
    const auto copy = [&](Memory memory, const std::uint8_t* data, std::size_t len) {
      if (memory == Memory::host && place == Memory::host) {
        std::copy_n(data, len, to);
      } else if (memory == Memory::host) {
        engine_.copy_to_device(to, data, len, slot_.stream());
      } else if (place == Memory::host) {
        engine_.copy_to_host(to, data, len, slot_.stream());
      } else {
        engine_.copy_on_device(to, data, len, slot_.stream());
      }
      to += len;
    };
    writing_.parts().for_range(piece_.text_begin, piece_.text_len, copy);
  }

  void encrypt() {
    gather(text_, Memory::device);
    items_.clear();
    std::uint64_t out = 0;
    std::size_t in = 0;
    for (std::size_t i = piece_.first; i < piece_.first + piece_.count; ++i) {
      items_.push_back({i, in, out});
      in += static_cast<std::size_t>(chunks_->lengths[i]);
      out += Writing::room_of(*chunks_, i);
    }
    results_.assign(piece_.count, {});
    const Columns& columns =
        columns_.make(*chunks_, Direction::encrypt, items_, {text_, piece_.text_len}, {sealed_, piece_.len});
    const Status status = run_columns(name_, columns, results_, slot_.stream());
    if (status != Status::ok) throw Error(status, "encryption failed");
    engine_.copy_to_host(pinned_, sealed_, piece_.len, slot_.stream());
  }

  // Chunks that follow each other in the file are written at once.
  bool write_chunks() {
    const std::size_t tag_in_file = chunks_->tags.empty() ? chunks_->tag_len : 0;
    std::size_t begin = 0, len = 0;
    std::uint64_t position = 0;
    for (const FilePiece::Item& item : items_) {
      const std::size_t at = static_cast<std::size_t>(item.place), text_len = chunks_->lengths[item.chunk];
      if (at != begin + len || chunks_->file_offsets[item.chunk] != position + len) {
        if (!writing_.target().write(pinned_ + begin, len, position)) return false;
        begin = at;
        len = 0;
        position = chunks_->file_offsets[item.chunk];
      }
      len += text_len + tag_in_file;
      if (!chunks_->tags.empty()) {
        std::copy_n(pinned_ + at + text_len, chunks_->tag_len, chunks_->tags.data() + item.chunk * chunks_->tag_len);
      }
    }
    return writing_.target().write(pinned_ + begin, len, position);
  }

  void reserve() {
    if (text_ != nullptr) return;
    pinned_ = slot_.pinned(room_);
    sealed_ = slot_.on_device(room_);
    // Bytes between chunks are copied to the host, and not written.
    if (!chunks_->tags.empty()) engine_.clear(sealed_, room_, slot_.stream());
    text_ = slot_.on_device(room_);
    slot_.set_secret(text_, room_);
  }

  const std::string_view name_;
  DeviceEngine& engine_;
  Writing& writing_;
  const ChunksToWrite* const chunks_;
  const std::size_t room_;
  SlotMemory slot_;
  std::uint8_t* pinned_ = nullptr;
  std::uint8_t* sealed_ = nullptr;
  std::uint8_t* text_ = nullptr;
  WrittenPiece piece_;
  bool is_loaded_ = false;
  std::vector<FilePiece::Item> items_;
  PieceColumns columns_;
  std::vector<Result> results_;
};

std::optional<WriteFailure> write_from_host(int descriptor, std::span<const TextPart> parts, std::uint64_t total,
                                            const WriteOptions& options) {
  const std::size_t piece_len = options.piece_len != 0 ? options.piece_len : most_slot_len;
  Writing writing(descriptor, parts, nullptr, total, piece_len, options);
  const std::uint64_t pieces = (total - 1) / piece_len + 1;
  return writing.run(std::min<std::uint64_t>(threads_for(options.threads), pieces), [&] {
    for (WrittenPiece piece; writing.next(piece);) {
      std::uint64_t position = piece.text_begin;
      bool is_written = true;
      writing.parts().for_range(position, piece.text_len, [&](Memory, const std::uint8_t* data, std::size_t len) {
        is_written = is_written && writing.target().write(data, len, position);
        position += len;
      });
      if (!is_written) return;
    }
  });
}

std::uint64_t checked_size(std::span<const TextPart> parts) {
  for (const TextPart& part : parts) check_buffer_len("a part", part.len);
  return TextParts(parts).size();
}

}  // namespace

std::optional<WriteFailure> write_chunks(std::string_view engine, const ChunksToWrite& chunks,
                                         const WriteOptions& options) {
  check(chunks);
  if (chunks.count == 0) return std::nullopt;
  DeviceEngine& device_engine = select_device_engine(engine);
  std::size_t longest = 0;
  std::uint64_t total = 0, file_end = 0;
  for (std::size_t i = 0; i < chunks.count; ++i) {
    const std::uint64_t len_in_file = chunks.lengths[i] + (chunks.tags.empty() ? chunks.tag_len : 0);
    file_end = std::max(file_end, chunks.file_offsets[i] + len_in_file);
    longest = std::max(longest, Writing::room_of(chunks, i));
    total += Writing::room_of(chunks, i);
  }
  std::size_t threads = threads_for(options.threads);
  const std::size_t piece_len =
      options.piece_len != 0 ? std::min(options.piece_len, most_device_chunk_len) : slot_len_for(total, threads);
  const auto room = std::max(longest, static_cast<std::size_t>(std::min<std::uint64_t>(piece_len, total)));
  if (room == 0) return std::nullopt;
  threads = threads_with_slots(threads, total, room);
  Writing writing(chunks.descriptor, chunks.parts, &chunks, file_end, room, options);
  return writing.run_slots<WriteSlot>(threads, device_engine, engine, writing, room);
}

std::optional<WriteFailure> write_plain(DeviceEngine& engine, int descriptor, std::span<const TextPart> parts,
                                        const WriteOptions& options) {
  const std::uint64_t total = checked_size(parts);
  if (total == 0) return std::nullopt;
  const std::size_t most = threads_for(options.threads);
  const std::size_t piece_len = options.piece_len != 0 ? options.piece_len : slot_len_for(total, most);
  const auto room =
      static_cast<std::size_t>(std::min<std::uint64_t>({piece_len, total, PinnedBudget::most / slots_of_thread}));
  Writing writing(descriptor, parts, nullptr, total, room, options);
  const std::string_view unnamed;
  return writing.run_slots<WriteSlot>(threads_with_slots(most, total, room), engine, unnamed, writing, room);
}

std::optional<WriteFailure> write_plain(std::string_view engine, int descriptor, std::span<const TextPart> parts,
                                        const WriteOptions& options) {
  const std::uint64_t total = checked_size(parts);
  if (total == 0) return std::nullopt;
  const bool on_device =
      std::any_of(parts.begin(), parts.end(), [](const TextPart& part) { return part.memory == Memory::device; });
  if (!on_device) return write_from_host(descriptor, parts, total, options);
  return write_plain(select_device_engine(engine), descriptor, parts, options);
}

}  // namespace warpcipher
