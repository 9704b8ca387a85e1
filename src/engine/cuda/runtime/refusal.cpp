// SPDX-License-Identifier: Apache-2.0
#include "engine/cuda/runtime/refusal.hpp"

namespace warpcipher::cuda {

std::string forced_text(const Choice& choice, std::string_view value) {
  return "WARPCIPHER_FORCE=" + std::string(choice.name) + "=" + std::string(value);
}

std::string to_text(const Refusal& refusal) {
  const std::string given = std::to_string(refusal.given);
  const std::string bound = std::to_string(refusal.bound);
  switch (refusal.reason) {
    case Reason::none:
      return {};
    case Reason::forced:
      return forced_text(*refusal.choice, refusal.choice->values[refusal.given - 1]) + " asks for another";
    case Reason::tuned:
      return "another was measured to be faster on this machine";
    case Reason::capability_9_0:
      return "needs compute capability 9.0";
    case Reason::tensor_cores:
      return "needs compute capability 8.x or 9.x";
    case Reason::one_multiprocessor:
      return "needs two multiprocessors";
    case Reason::shared_memory:
      return "needs " + bound + " bytes of shared memory a block, there are " + given;
    case Reason::tables_64:
      return "needs tables of 128 KiB";
    case Reason::mode:
      return "there is no such kernel for this mode";
    case Reason::batch:
      return "is for one message by itself in this mode";
    case Reason::many_keys:
      return "needs one key for all messages, known to the host";
    case Reason::one_key:
      return "is for more keys than one";
    case Reason::key_192:
      return "there is no such kernel for keys of 192 bits";
    case Reason::key_not_128:
      return "is for keys of 128 bits";
    case Reason::no_expansion:
      return "the kernel for this text makes no round keys";
    case Reason::derived_on_host:
      return "the host has made the round keys already";
    case Reason::empty:
      return "there is no text";
    case Reason::long_messages:
      return "takes messages of up to " + bound + " blocks, the longest has " + given;
    case Reason::uneven_messages:
      return "needs messages of one length";
    case Reason::partial_tiles:
      return "most of its tiles would be partly empty";
    case Reason::few_tiles:
      return "needs " + bound + " tiles of 256 blocks to pay, there are " + given;
    case Reason::few_warps:
      return "needs work for " + bound + " warps to pay, there is work for " + given;
    case Reason::few_messages:
      return "needs " + bound + " messages to pay, there are " + given;
    case Reason::many_messages:
      return "is for up to " + bound + " messages, there are " + given;
    case Reason::few_blocks:
      return "needs " + bound + " blocks to pay, there are " + given;
    case Reason::few_blocks_of_key:
      return "needs " + bound + " blocks a key to pay, there are " + given;
    case Reason::many_short:
      return "there are enough short messages (" + given + ") to hash each by few lanes or in a row";
    case Reason::sector_len:
      return "needs data units of 512 to 8191 bytes, these have " + given;
    case Reason::registers:
      return "longer keys need more registers than a thread of it has";
    case Reason::any_address:
      return "takes texts that are not aligned a part of a block at a time, and these fill tiles";
  }
  return {};
}

}  // namespace warpcipher::cuda
