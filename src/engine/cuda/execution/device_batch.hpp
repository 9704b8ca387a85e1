// SPDX-License-Identifier: Apache-2.0
// A batch as the GPU runs it: messages of one algorithm and direction, and all that its kernels read, in device memory.
// Two ways lead here: messages that the host knows one by one (message_batch.hpp), and columns of which the GPU makes
// the views itself (column_batch.hpp). One function runs what comes of either (execute()).
#pragma once

#include <cstdint>

#include "engine/cuda/ghash/ghash.hpp"
#include "engine/cuda/inputs/aes_keys.hpp"
#include "engine/cuda/inputs/des_schedules.hpp"
#include "engine/cuda/inputs/message_view.hpp"
#include "engine/cuda/inputs/speculation.hpp"
#include "engine/cuda/runtime/gpu.hpp"
#include "engine/stream.hpp"
#include "mode/algorithm.hpp"

namespace warpcipher::cuda {

struct DeviceBatch {
  const Device& device;
  Stream stream;
  const Algorithm& algorithm;
  Direction direction;
  MessageView* views = nullptr;               // `start`: the IV; once first blocks are encrypted what comes of it
  const std::uint64_t* first_tile = nullptr;  // prefix sums, one more than messages; not for serial modes
  std::uint32_t messages = 0;
  std::uint64_t tiles = 0;
  std::uint64_t units = 0;        // of all messages
  std::uint64_t most_units = 0;   // of one
  bool in_place = true;           // some messages may lie where their output goes
  bool is_ordered = false;        // serial modes: views come in the order of their length
  bool computes_tags = false;     // GCM decryption: write the tags that the texts should have
  const Key* only_key = nullptr;  // of all messages, where the host has it
  AesKeys* aes_keys = nullptr;
  DesKeys des_keys{};
  ghash::HashBatch hashes{};  // GCM

  bool is_gcm() const { return algorithm.mode.id == Mode::gcm; }
  bool is_aes() const { return warpcipher::is_aes(algorithm.cipher.id); }
  // Whether tags are checked before text is written: then execute() needs a word a message.
  bool checks_tags() const { return is_gcm() && direction == Direction::decrypt && !computes_tags; }
};

// Encrypts one block a message, before the text: GCM's E(J0), which goes to `masks` and leaves the first counter in the
// view, and the first tweak of XTS. Nothing for other modes. Derives the keys.
void encrypt_first_blocks(const DeviceBatch& batch, Block* masks);

// Enqueues text and tags. verdicts: device memory, a word a message, where checks_tags(); 0 becomes of a message whose
// tag does not match, of which zeros are written. Such text is not read before its tag was found right, not even in
// place. has_text: start_text() has begun the text.
void execute(const DeviceBatch& batch, std::uint32_t* verdicts, bool has_text = false);

// Starts the text of a counter mode before the host knows what the batch is like (speculation.hpp): its tiles and units
// are those of messages all alike. Fills in the rest of the speculation; false where the kernel for such a batch does
// not check it itself: then nothing was launched.
bool start_text(const DeviceBatch& batch, Speculation& speculation);

}  // namespace warpcipher::cuda
