// SPDX-License-Identifier: Apache-2.0
// The payload of harrison2008 (sections 5 and 6): many messages, each with its key, its mode and its length, and what
// the CPU makes of them before a GPU can run them.
#pragma once

#include <cstdint>

namespace warpcipher::lab::harrison {

// A message as a job takes it: in Setting::iv, one after another. Their texts follow in the same order in Data::in,
// each from the start of a block, and the results in Data::out.
//
// padding: bytes that the GPU adds by PKCS #5 (section 6.3). 0: none. n from 1 to 16: the last n bytes of the last
// block. Data::in has its first 16 - n bytes; the n after them are not read. 16 is a block of its own, which Data::in
// does not have.
struct Message {
  std::uint32_t blocks;  // of 16 bytes, 1 or more, with padding
  std::uint32_t serial;  // 0: CTR, a thread a block. 1: CBC encryption, a thread for the message
  std::uint32_t key;     // its number among the keys of 16 bytes in Setting::key
  std::uint32_t padding;
  std::uint8_t iv[16];
};
static_assert(sizeof(Message) == 32);

// The serialised streams of a payload (section 6.1), in this order. The key schedule stream holds each key once,
// however many messages use it and however often it was given.
//
//   descriptors             40 bytes a message
//   key schedules           176 bytes a key
//   logical thread index    4 bytes a message: the number of its first thread
//
// parallel messages have a thread a block, serial ones one.
struct Descriptor {
  std::uint32_t first_in;   // block of Data::in
  std::uint32_t first_out;  // of Data::out
  std::uint32_t blocks;
  std::uint32_t serial;
  std::uint32_t schedule;  // its number in the stream
  std::uint32_t padding;
  std::uint32_t iv[4];
};
static_assert(sizeof(Descriptor) == 40);

}  // namespace warpcipher::lab::harrison
