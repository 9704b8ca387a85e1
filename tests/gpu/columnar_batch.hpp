// SPDX-License-Identifier: Apache-2.0
// A columnar batch of random messages for the tests of columns, and its expected output.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "cases.hpp"
#include "engine/stream.hpp"
#include "message/message.hpp"
#include "mode/algorithm.hpp"

using conformance::random_below;

struct Shape {
  warpcipher::Direction direction = warpcipher::Direction::encrypt;
  std::size_t count = 0;
  std::size_t longest = 0;
  std::size_t keys = 1;
  bool key_bytes = false;  // rather than Key objects
  bool device_columns = false;
  bool offsets = false;  // else back to back
  bool in_place = false;
  bool aad_ranges = false;
  std::size_t tag_len = 16;
  std::size_t shortest = 0;
  bool pads = false;
  bool one_length = false;
  bool gaps = true;             // where there are offsets
  std::size_t slack = 64;       // bytes of the buffers after the last message
  bool messages = false;        // given as objects, in any order
  std::size_t every_other = 0;  // not 0: each second message has at most so many bytes

  std::string text() const;
};

// A batch in host memory; run() puts it on the GPU.
class ColumnarBatch {
 public:
  ColumnarBatch(const warpcipher::Algorithm& algorithm, const Shape& shape);

  // The expected output, by the oracle, and the status of each message.
  std::vector<warpcipher::Result> expect(std::vector<std::uint8_t>& out) const;

  // Runs it; out gets the bytes of the output buffer, whatever happens.
  std::vector<warpcipher::Result> run(std::vector<std::uint8_t>& out, warpcipher::Stream stream) const;

  const std::vector<std::uint8_t>& untouched() const { return out_; }

  std::vector<std::uint8_t> key_bytes, ivs, aad;
  std::vector<std::uint64_t> in_offsets, out_offsets, in_lengths, aad_offsets, aad_lengths;
  std::vector<std::uint32_t> key_index;
  std::size_t iv_len = 0;

  // Gives a message the IV of another.
  void repeat_iv(std::size_t from, std::size_t to) {
    std::copy_n(ivs.begin() + static_cast<std::ptrdiff_t>(iv_len * from), iv_len,
                ivs.begin() + static_cast<std::ptrdiff_t>(iv_len * to));
  }

 private:
  // Message i of texts and outputs that begin there.
  warpcipher::Message message(std::size_t i, warpcipher::Direction direction, std::uint8_t* text,
                              std::uint8_t* out) const;

  std::vector<warpcipher::Result> run_messages(std::uint8_t* text, std::uint8_t* out, warpcipher::Stream stream) const;

  // Tags that match, but for a few.
  void seal();

  // Padding that is right, but for a few.
  void pad();

  const warpcipher::Algorithm& algorithm_;
  const Shape shape_;
  std::size_t block_len_ = 0;
  std::vector<std::size_t> paddings_;  // of each message, 0: wrong
  std::deque<warpcipher::Key> keys_;
  std::vector<const warpcipher::Key*> pointers_;
  std::vector<std::uint8_t> text_, out_;
};

// Both return the number of failures: against the oracle,
int test_batch(const ColumnarBatch& batch, const warpcipher::Algorithm& algorithm, const Shape& shape,
               warpcipher::Stream stream);
int test_shape(const warpcipher::Algorithm& algorithm, const Shape& shape, warpcipher::Stream stream);

// and of what must be refused with `expected` in the text of the error, with nothing written.
int test_refusal(const ColumnarBatch& batch, const std::string& expected, warpcipher::Stream stream);
