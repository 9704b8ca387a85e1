// SPDX-License-Identifier: Apache-2.0
// Page headers without encryption: the size of the page changes, the header's length does not.
//
// A page shrinks by what encryption added, and a shorter number may be a shorter varint. A header that keeps its length
// keeps everything after it in place, so where a page goes is known before its header is decrypted. Varints may be
// longer than they must: bits that say nothing fill them up. Padding behind a header, of parquet-java, goes: it may
// have more bytes than numbers can take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "parquet/compact.hpp"

namespace warpcipher::parquet {

// Mends the header of a page that was `sealed` bytes long and is `plain` now, and returns the header's bytes; what
// follows them in the text is padding. The CRC, which covered the ciphertext, is left out. Throws (compact.hpp) where
// the header speaks of another page: of another size, or another kind.
std::size_t shrink_header(std::span<std::uint8_t> text, std::uint64_t sealed, std::uint64_t plain, bool is_dictionary);

}  // namespace warpcipher::parquet
