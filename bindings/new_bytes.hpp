// SPDX-License-Identifier: Apache-2.0
// Memory for the result of a call. A long text lies in memory that the system has just handed out, and writing it is
// then a page fault for each page: in pages of 4 KiB they take longer than AES, in pages of 2 MiB they do not.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

namespace warpcipher::python {

// A bytes object of `size` bytes, and a bytearray. Their content is undefined. Throw MemoryError.
nanobind::object new_bytes(std::size_t size);
nanobind::object new_bytearray(std::size_t size);

// Where such a bytes object is to be written, before anybody else has seen it.
std::uint8_t* bytes_of(nanobind::handle bytes);

}  // namespace warpcipher::python
