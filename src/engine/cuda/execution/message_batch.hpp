// SPDX-License-Identifier: Apache-2.0
// Makes a DeviceBatch of messages that the host knows one by one. The host sends descriptors, IVs, AAD and keys once.
// The GPU derives the rest, so a key for each message costs the host no more than a copy.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/cuda/execution/device_batch.hpp"
#include "engine/cuda/execution/pieces.hpp"
#include "engine/cuda/runtime/memory.hpp"
#include "message/message.hpp"

namespace warpcipher::cuda {

// messages[numbers[i]] for all i: messages of one algorithm and direction, in the order in which they run. In a
// parallel mode, first_tile has the prefix sums of their tiles, one more than numbers. Else it is empty, and the
// messages are in the order of length, longest first.
struct MessageGroup {
  std::span<const Message> messages;
  std::span<const std::uint32_t> numbers;
  std::span<const std::uint64_t> first_tile;

  std::size_t size() const { return numbers.size(); }
  const Message& operator[](std::size_t i) const { return messages[numbers[i]]; }
};

class MessageBatch {
 public:
  // Enqueues the input of execute(). pieces: where texts lie, if not in the messages. Throws Error{engine_failure} if
  // there are more tiles than a launch can have.
  MessageBatch(const MessageGroup& group, const Device& device, Stream stream, const Pieces* pieces = nullptr);
  MessageBatch(const MessageBatch&) = delete;
  MessageBatch& operator=(const MessageBatch&) = delete;

  // Runs the batch. For AEAD decryption it sets statuses[group.numbers[i]], and waits for that.
  void run(std::span<Status> statuses) const;

  // The same of pieces. verdicts: of decryption, device memory, a word for each message, which is not waited for.
  void run_pieces(std::uint32_t* verdicts) const;

 private:
  void number_keys();
  void measure();
  void fill_views();
  void fill_hashes();
  void reserve_powers();

  const MessageGroup& group_;
  DeviceBatch batch_;
  AesKeys aes_keys_;
  StreamKeys stream_keys_;
  SivKeys siv_keys_;
  Upload upload_;
  std::vector<std::uint32_t> key_of_;
  std::vector<const Key*> keys_;
  std::uint64_t aad_len_ = 0;
  Upload::Array<MessageView> views_{};
  Upload::Array<std::uint64_t> first_tile_{}, first_chunk_{};
  Upload::Array<std::uint8_t> key_bytes_{}, aad_{};
  Upload::Array<HashView> hash_views_{};
  Upload::Array<Block> masks_{};
  Upload::Array<gf128::Element> powers_{}, sums_{};  // of GHASH, for few messages
  std::optional<ghash::GhashAlgorithm> powers_for_;  // none: there are none
  std::optional<PieceArrays> pieces_;
};

// Runs one message, without the arrays of a batch if its mode allows that. Waits only if a tag is checked.
Status run_message(const Message& message, const Device& device, Stream stream);

// DeviceEngine::take_padding_off().
void take_padding_off(std::span<const Message* const> messages, std::span<std::uint32_t> lengths, Stream stream);

}  // namespace warpcipher::cuda
