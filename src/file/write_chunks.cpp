// SPDX-License-Identifier: Apache-2.0
#include "file/write_chunks.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "dispatch/columns.hpp"
#include "dispatch/select.hpp"
#include "engine/device_engine.hpp"
#include "file/file_work.hpp"
#include "file/read_chunks.hpp"
#include "file/slots.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t alignment = 16;  // what GPUs load at once
constexpr std::uint64_t most_offset = std::uint64_t{1} << 62;

[[noreturn]] void fail(const std::string& text) { throw Error(Status::invalid_argument, text); }

void check_count(const char* what, std::size_t got, std::size_t expected) {
  if (got == expected) return;
  fail(std::string(what) + " has " + std::to_string(got) + " entries, expected " + std::to_string(expected));
}

void check(const ChunksToWrite& c) {
  check_message_count(c.count);
  check_count("file_offsets", c.file_offsets.size(), c.count);
  check_count("lengths", c.lengths.size(), c.count);
  if (!c.key_index.empty()) check_count("key_index", c.key_index.size(), c.count);
  if (c.keys.empty()) fail("no key given");
  if (c.key_index.empty() && c.keys.size() > 1) fail("several keys and no key_index");
  const Algorithm& algorithm = c.keys[0]->algorithm();
  for (const Key* const key : c.keys) {
    if (&key->algorithm() != &algorithm) fail("all keys of a file's chunks have one algorithm");
  }
  if (!algorithm.is_aead()) fail(std::string(algorithm.name) + " authenticates nothing: expected an AEAD");
  check_buffer_len("an IV", c.iv_len);
  check_buffer_len("a tag", c.tag_len);
  check_count("ivs", c.ivs.size(), c.count * c.iv_len);
  if (!c.tags.empty()) check_count("tags", c.tags.size(), c.count * c.tag_len);
  std::uint64_t text_len = 0, parts_len = 0;
  for (std::size_t i = 0; i < c.count; ++i) {
    const std::string chunk = "chunk " + std::to_string(i);
    if (c.lengths[i] + c.tag_len > most_device_chunk_len) {
      fail(chunk + " has " + std::to_string(c.lengths[i]) + " bytes, and with its tag one that a device encrypts has " +
           std::to_string(most_device_chunk_len) + " at most");
    }
    if (c.file_offsets[i] > most_offset) fail(chunk + " lies beyond byte 2^62 of the file");
    if (!c.key_index.empty() && c.key_index[i] >= c.keys.size()) fail(chunk + " has a key index without a key");
    text_len += c.lengths[i];
  }
  for (const TextPart& part : c.parts) {
    check_buffer_len("a part", part.len);
    parts_len = std::min(parts_len + part.len, most_offset);
  }
  if (parts_len != text_len) {
    fail("the parts have " + std::to_string(parts_len) + " bytes, and the chunks take " + std::to_string(text_len));
  }
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

  std::uint8_t* memory() const { return memory_; }
  int error() const { return error_; }  // errno: there is no room

 private:
  static bool is_in_memory(int descriptor) {
    struct statfs system {};
    struct stat file {};
    return fstatfs(descriptor, &system) == 0 && system.f_type == TMPFS_MAGIC && fstat(descriptor, &file) == 0 &&
           S_ISREG(file.st_mode);
  }

  std::uint8_t* memory_ = nullptr;
  std::uint64_t size_ = 0;
  int error_ = 0;
};

// Consecutive chunks that are encrypted together.
struct Piece {
  std::size_t first = 0, count = 0;
  std::uint64_t text_begin = 0;  // in the parts, joined
  std::size_t text_len = 0;
  std::size_t len = 0;  // of ciphertexts and tags in a slot
};

class Writing {
 public:
  // mapped: the file, or null.
  Writing(const ChunksToWrite& chunks, const WriteOptions& options, std::size_t room, std::uint8_t* mapped)
      : chunks_(chunks), work_(options.check), room_(room), mapped_(mapped) {
    std::uint64_t begin = 0;
    for (const TextPart& part : chunks.parts) {
      part_begins_.push_back(begin);
      begin += part.len;
    }
  }

  const ChunksToWrite& chunks() const { return chunks_; }

  // What a chunk takes of a slot. Tags that lie elsewhere in the file leave gaps, and the next chunk is aligned.
  static std::size_t room_of(const ChunksToWrite& c, std::size_t i) {
    const std::size_t len = c.lengths[i] + c.tag_len;
    return c.tags.empty() ? len : (len + alignment - 1) / alignment * alignment;
  }

  bool next(Piece& piece) {
    if (!work_.goes_on()) return false;
    const std::lock_guard lock(mutex_);
    piece = {next_, 0, text_begin_, 0, 0};
    while (next_ < chunks_.count) {
      const std::size_t room = room_of(chunks_, next_);
      if (room > room_ - piece.len) break;
      piece.len += room;
      piece.text_len += chunks_.lengths[next_];
      ++piece.count;
      ++next_;
    }
    text_begin_ += piece.text_len;
    return piece.count != 0;
  }

  // Calls body(part, begin, len) for the parts that hold a range of the text.
  template <class Body>
  void for_parts(std::uint64_t begin, std::uint64_t len, Body&& body) const {
    if (len == 0) return;
    auto at = static_cast<std::size_t>(std::upper_bound(part_begins_.begin(), part_begins_.end(), begin) -
                                       part_begins_.begin()) -
              1;
    for (; len != 0; ++at) {
      const std::uint64_t skip = begin - part_begins_[at];
      const std::uint64_t taken = std::min(len, chunks_.parts[at].len - skip);
      if (taken != 0) body(chunks_.parts[at], skip, taken);
      begin += taken;
      len -= taken;
    }
  }

  // False, and the call fails, where not all could be written.
  bool write(const std::uint8_t* data, std::size_t len, std::uint64_t position) {
    if (mapped_ != nullptr) {
      std::copy_n(data, len, mapped_ + position);
      return true;
    }
    while (len != 0) {
      const ssize_t done = pwrite(chunks_.descriptor, data, len, static_cast<off_t>(position));
      if (done < 0 && errno == EINTR) {
        work_.check(true);
        continue;
      }
      if (done <= 0) {
        const int error = done < 0 ? errno : ENOSPC;
        work_.stop();
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = WriteFailure{position, error};
        return false;
      }
      data += done;
      len -= static_cast<std::size_t>(done);
      position += static_cast<std::uint64_t>(done);
    }
    return true;
  }

  template <class Body>
  std::optional<WriteFailure> run(std::size_t threads, Body&& body) {
    work_.run(threads, body);
    return failure_;
  }

 private:
  const ChunksToWrite& chunks_;
  FileWork work_;
  const std::size_t room_;
  std::uint8_t* const mapped_;
  std::vector<std::uint64_t> part_begins_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::uint64_t text_begin_ = 0;
  std::optional<WriteFailure> failure_;
};

// One piece on its way to the file: device memory that its plaintext is gathered in and that it is encrypted to,
// page-locked memory for the ciphertext, and the stream that orders its work.
class WriteSlot {
 public:
  WriteSlot(std::string_view name, DeviceEngine& engine, Writing& writing, std::size_t room)
      : name_(name), engine_(engine), writing_(writing), chunks_(writing.chunks()), room_(room) {}
  WriteSlot(const WriteSlot&) = delete;
  WriteSlot& operator=(const WriteSlot&) = delete;
  // After an exception the stream may still use the memory.
  ~WriteSlot() {
    if (!has_stream_) return;
    try {
      engine_.wait(stream_);
    } catch (const Error&) {  // the error that brought us here is already reported
    }
    if (text_ != nullptr) engine_.deallocate(text_, room_, room_, stream_);
    if (sealed_ != nullptr) engine_.deallocate(sealed_, room_, 0, stream_);
    if (pinned_ != nullptr) engine_.free_pinned(pinned_, room_, 0);
    engine_.destroy_stream(stream_);
  }

  // Takes the next piece and starts to encrypt it; false when there is none. The slot is empty.
  bool load() {
    if (!writing_.next(piece_)) return false;
    naming_chunks(piece_.first, piece_.first + piece_.count - 1, [&] {
      reserve();
      encrypt();
    });
    is_loaded_ = true;
    return true;
  }

  // Writes what the slot holds, if anything; false where that failed.
  bool write() {
    if (!is_loaded_) return true;
    is_loaded_ = false;
    engine_.wait(stream_);
    const std::size_t tag_in_file = chunks_.tags.empty() ? chunks_.tag_len : 0;
    std::size_t begin = 0, len = 0, at = 0;
    std::uint64_t position = 0;
    for (std::size_t i = piece_.first; i < piece_.first + piece_.count; ++i) {
      const bool follows = at == begin + len && chunks_.file_offsets[i] == position + len;
      if (!follows) {
        if (!writing_.write(pinned_ + begin, len, position)) return false;
        begin = at;
        len = 0;
        position = chunks_.file_offsets[i];
      }
      len += chunks_.lengths[i] + tag_in_file;
      if (!chunks_.tags.empty()) {
        std::memcpy(chunks_.tags.data() + i * chunks_.tag_len, pinned_ + at + chunks_.lengths[i], chunks_.tag_len);
      }
      at += Writing::room_of(chunks_, i);
    }
    return writing_.write(pinned_ + begin, len, position);
  }

 private:
  void encrypt() {
    std::size_t filled = 0;
    writing_.for_parts(piece_.text_begin, piece_.text_len,
                       [&](const TextPart& part, std::uint64_t begin, std::uint64_t len) {
                         if (part.memory == Memory::device) {
                           engine_.copy_on_device(text_ + filled, part.data + begin, len, stream_);
                         } else {
                           engine_.copy_to_device(text_ + filled, part.data + begin, len, stream_);
                         }
                         filled += len;
                       });
    in_offsets_.clear();
    out_offsets_.clear();
    std::uint64_t in = 0, out = 0;
    for (std::size_t i = piece_.first; i < piece_.first + piece_.count; ++i) {
      in_offsets_.push_back(in);
      out_offsets_.push_back(out);
      in += chunks_.lengths[i];
      out += Writing::room_of(chunks_, i);
    }
    Columns columns;
    columns.direction = Direction::encrypt;
    columns.memory = Memory::device;
    columns.count = piece_.count;
    columns.in = {text_, piece_.text_len};
    columns.in_offsets = in_offsets_;
    columns.in_lengths = chunks_.lengths.subspan(piece_.first, piece_.count);
    columns.out = {sealed_, piece_.len};
    columns.out_offsets = out_offsets_;
    columns.tag_len = chunks_.tag_len;
    columns.iv_len = chunks_.iv_len;
    columns.ivs = chunks_.ivs.subspan(piece_.first * chunks_.iv_len, piece_.count * chunks_.iv_len);
    choose_keys(columns, chunks_.keys, chunks_.key_index, piece_.first, piece_.count, key_index_);
    results_.assign(piece_.count, {});
    const Status status = run_columns(name_, columns, results_, stream_);
    if (status != Status::ok) throw Error(status, "encryption failed");
    engine_.copy_to_host(pinned_, sealed_, piece_.len, stream_);
  }

  // Only once there is a piece: page-locked memory is costly.
  void reserve() {
    if (text_ != nullptr) return;
    stream_ = engine_.create_stream();
    has_stream_ = true;
    pinned_ = static_cast<std::uint8_t*>(engine_.allocate_pinned(room_));
    sealed_ = static_cast<std::uint8_t*>(engine_.allocate(room_, stream_));
    text_ = static_cast<std::uint8_t*>(engine_.allocate(room_, stream_));
  }

  const std::string_view name_;
  DeviceEngine& engine_;
  Writing& writing_;
  const ChunksToWrite& chunks_;
  const std::size_t room_;
  Stream stream_ = nullptr;
  bool has_stream_ = false;
  std::uint8_t* pinned_ = nullptr;
  std::uint8_t* sealed_ = nullptr;
  std::uint8_t* text_ = nullptr;
  Piece piece_;
  bool is_loaded_ = false;
  std::vector<std::uint64_t> in_offsets_, out_offsets_;
  std::vector<std::uint32_t> key_index_;
  std::vector<Result> results_;
};

class WriteWorker {
 public:
  WriteWorker(std::string_view name, DeviceEngine& engine, Writing& writing, int device, std::size_t room)
      : scope_(engine, device),
        slots_{WriteSlot(name, engine, writing, room), WriteSlot(name, engine, writing, room)} {}

  void work() {
    for (std::size_t turn = 0; slots_[turn % slots_of_thread].write(); ++turn) {
      if (slots_[turn % slots_of_thread].load()) continue;
      slots_[(turn + 1) % slots_of_thread].write();
      return;
    }
  }

 private:
  const SelectedDevice scope_;  // before the slots, and so there when they go
  std::array<WriteSlot, slots_of_thread> slots_;
};

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
  const MappedFile file(chunks.descriptor, file_end);
  if (file.error() != 0) return WriteFailure{file_end, file.error()};
  Writing writing(chunks, options, room, file.memory());
  const int device = device_engine.current_device();
  return writing.run(threads, [&] { WriteWorker(engine, device_engine, writing, device, room).work(); });
}

}  // namespace warpcipher
