// SPDX-License-Identifier: Apache-2.0
// One message from Python's side: text and tag in one buffer (ciphertext || tag), and the run without the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <string_view>

#include "engine/engine.hpp"
#include "message/message.hpp"
#include "operand.hpp"

namespace warpcipher::python {

// The caller's wishes, apart from the bytes.
struct Request {
  const Key& key;
  Direction direction;
  Padding padding;
  std::size_t tag_len;  // 0 unless the algorithm is an AEAD
};

// The tag length for an algorithm, from the argument of that name: the given one for an AEAD, 0 for others, which take
// no other value than the default. Throws TypeError if it is not an int, ValueError if it is not a length.
std::size_t tag_len_of(const Algorithm& algorithm, nanobind::handle tag_length);

// The padding, for an algorithm that takes it.
Padding padding_of(const Algorithm& algorithm, bool padded);

// The request of a caller's arguments. Throws as tag_len_of() and padding_of() do.
Request make_request(const Key& key, bool decrypt, bool padded, nanobind::handle tag_length);

// Bytes that a run writes at most for `in_len` bytes of input, the tag counted on either side. Throws InvalidTag when
// the input is too short for its tag.
std::size_t output_len(const Request& request, std::size_t in_len);

// The objects of Python that a message borrows. If `out` is None, the caller makes the result.
struct Operands {
  Operands(nanobind::handle data, nanobind::handle result, nanobind::handle iv_object, nanobind::handle aad_object)
      : in(data, "data", Operand::Use::read),
        out(result, "out", result.is_none() ? Operand::Use::read_or_none : Operand::Use::write),
        iv(iv_object, "iv", Operand::Use::read_or_none),
        aad(aad_object, "aad", Operand::Use::read_or_none) {}

  Operand in, out, iv, aad;
};

// The message for input and output operands as Python has them. Throws ValueError when the output is too small or lies
// elsewhere. The operands must outlive the message.
Message make_message(const Request& request, const Operand& in, std::uint8_t* out, std::size_t out_len,
                     const Operand& iv, const Operand& aad);

// Throws ValueError when in and out do not lie in the same place.
void check_places(const Operand& in, const Operand& out);

// Runs one message; returns the bytes written, the tag counted. Throws for a tag or padding that does not match.
std::size_t run_one(const Message& message, std::string_view engine, Stream stream, int device);

// A bytes object that nobody else has seen, shortened to the written bytes; the rest is wiped.
nanobind::object shortened(nanobind::object bytes, std::size_t written);

// True when a run on device memory may still be at work as it returns.
bool returns_early(const Message& message);

}  // namespace warpcipher::python
