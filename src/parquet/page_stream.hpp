// SPDX-License-Identifier: Apache-2.0
// The pages of an encrypted chunk, piece by piece: a thread reads some pages into a buffer that its core's cache holds,
// and decrypts them there while another reads the next (open_chunks.hpp).
//
//   in the file    header page header page header page ...       each a module (page_modules.hpp)
//   pieces         [---- 0 -----------][---- 1 -----------]      whole pages with their headers
//
// Lengths are all that is known of modules that nobody has decrypted. Errors as in compact.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "flow/file/sealing.hpp"
#include "parquet/page_modules.hpp"

namespace warpcipher::parquet {

// A chunk as the file has it.
struct SealedChunk {
  std::uint64_t position = 0, size = 0;
  std::int16_t row_group = 0, column = 0;
  bool is_encrypted = false;
  bool dictionary = false;  // its first page is one
};

// The file could not be read: it ended (error is 0), or the system says why.
struct ReadError {
  std::uint64_t position;
  int error;
};

// Reads all of `out` from a file. interrupted: called where a signal interrupted the read; may throw. Throws ReadError.
void read_at(int descriptor, std::uint64_t position, std::span<std::uint8_t> out,
             const std::function<void()>& interrupted);

// Memory at the beginning of a page of memory.
class PageBuffer {
 public:
  // Room for that many bytes; what it held is lost if it grows.
  std::uint8_t* room(std::size_t size);

  // Frees more than is worth keeping.
  void trim();

 private:
  static constexpr std::align_val_t alignment{4096};
  struct Free {
    void operator()(std::uint8_t* bytes) const { ::operator delete[](bytes, alignment); }
  };
  std::unique_ptr<std::uint8_t[], Free> bytes_;
  std::size_t size_ = 0;
};

struct PagePiece {
  struct Module {
    const std::uint8_t* at;  // its length
    std::uint64_t text_size, out;
  };
  struct Page {
    Module head, page;
    bool is_dictionary;
  };

  std::vector<Page> pages;
  std::uint64_t first_page = 0;    // the number of the first in the chunk
  std::uint64_t len = 0;           // of the modules
  std::vector<std::uint8_t> aads;  // of head, page, head, page
  std::vector<std::size_t> aad_ends;
  PageBuffer buffer;
};

// Where a page is in its chunk and goes to: its header, and the bytes of header and page without encryption. Those of
// the header include `padding`, which is known once it is decrypted.
struct OpenedPage {
  std::uint64_t position, out, size;
  std::uint64_t head_size, padding = 0;
};

class PageStream {
 public:
  // prefix: the AAD prefix and the file's unique bytes; it and the source must outlive this.
  PageStream(const ChunkSource& source, const SealedChunk& chunk, Bytes prefix, std::uint64_t page_overhead);

  // Reads the next pages; false: there are none. Safe from any thread. Throws ReadError.
  bool next(PagePiece& piece, const std::function<void()>& interrupted);

  // Says how much padding the header of a page has. Safe from any thread.
  void set_padding(std::uint64_t page, std::uint64_t padding);

  // Of the pages that next() gave; for when all calls of it are over.
  const std::vector<OpenedPage>& pages() const { return pages_; }
  std::uint64_t out_size() const { return out_; }

 private:
  Bytes look(std::uint64_t size, PageBuffer& buffer, const std::function<void()>& interrupted);
  std::uint64_t take_pages(Bytes text, PagePiece& piece);
  std::uint64_t module_size(Bytes text, std::uint64_t at) const;
  void add(PagePiece& piece, Bytes text, std::uint64_t at, std::uint64_t head, std::uint64_t page);

  const ChunkSource& source_;
  const SealedChunk chunk_;
  const Bytes prefix_;
  const std::uint64_t page_overhead_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;           // bytes of the chunk that pieces have
  std::vector<std::uint8_t> ahead_;  // bytes after them that were read
  std::uint64_t needed_ = 0;         // of the next piece, as far as is known
  std::uint64_t out_ = 0;
  std::vector<OpenedPage> pages_;
};

}  // namespace warpcipher::parquet
