// SPDX-License-Identifier: Apache-2.0
#include "parquet/page_scan.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <string>

#include "core/bytes.hpp"
#include "core/error.hpp"

namespace warpcipher::parquet {
namespace {

// A header is some 60 bytes; with statistics in it, more.
constexpr std::size_t window_size = 512;

// Reads all of `out`; false where the system refuses, with the reason in `scan`.
bool read_at(int descriptor, std::uint64_t position, std::span<std::uint8_t> out, PageScan& scan) {
  while (!out.empty()) {
    const ssize_t got = pread(descriptor, out.data(), out.size(), static_cast<off_t>(position));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      scan.error = errno;
      scan.failed_at = position;
      return false;
    }
    if (got == 0) refuse("the file ended at byte " + std::to_string(position) + " while it was read");
    position += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

// The part of the file that was read last. A page begins with its length, which follows the header.
class Window {
 public:
  Window(int descriptor, std::uint64_t end, PageScan& scan) : descriptor_(descriptor), end_(end), scan_(scan) {}

  // The length of the module at a position, at least four bytes before the end; nothing where the system refuses.
  std::optional<std::uint64_t> length_at(std::uint64_t position) {
    if (position < begin_ || position + length_size > begin_ + size_) {
      begin_ = position;
      size_ = static_cast<std::size_t>(std::min<std::uint64_t>(window_size, end_ - position));
      if (!read_at(descriptor_, begin_, std::span(bytes_).first(size_), scan_)) return std::nullopt;
    }
    return load_le32(bytes_.data() + (position - begin_));
  }

  // Adds a module to `heads`.
  bool take(std::uint64_t position, std::uint64_t size) {
    std::vector<std::uint8_t>& heads = scan_.heads;
    scan_.head_positions.push_back(heads.size());
    const std::size_t at = heads.size(), here = static_cast<std::size_t>(position - begin_);
    const auto whole = static_cast<std::size_t>(size);
    const std::size_t known = std::min(whole, size_ - here);
    heads.insert(heads.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(here),
                 bytes_.begin() + static_cast<std::ptrdiff_t>(here + known));
    heads.resize(at + whole);
    return read_at(descriptor_, position + known, std::span(heads).subspan(at + known), scan_);
  }

 private:
  const int descriptor_;
  const std::uint64_t end_;
  PageScan& scan_;
  std::uint64_t begin_ = 0;
  std::size_t size_ = 0;
  std::array<std::uint8_t, window_size> bytes_;
};

}  // namespace

PageScan scan_pages(int descriptor, std::uint64_t start, std::uint64_t end) {
  PageScan scan;
  Window window(descriptor, end, scan);
  ModuleWalk walk(start, end);
  while (walk.has_next()) {
    const bool is_head = scan.positions.size() % 2 == 0;
    const std::uint64_t position = walk.position();
    const std::optional<std::uint64_t> length = window.length_at(position);
    if (!length) return scan;
    walk.add(*length, scan.positions);
    // A length that lies must not take memory: the module is in the chunk.
    if (is_head && walk.position() <= end && !window.take(position, length_size + *length)) return scan;
  }
  walk.finish(scan.positions);
  return scan;
}

}  // namespace warpcipher::parquet
