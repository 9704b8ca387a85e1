// SPDX-License-Identifier: Apache-2.0
// Cases of the conformance test of the CUDA engine, run alone or together, on both engines, with all bytes around them
// compared.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.hpp"
#include "mode/algorithm.hpp"

namespace conformance {

using namespace warpcipher;

extern std::mt19937_64 generator;

std::size_t random_below(std::size_t n);
std::vector<std::uint8_t> random_bytes(std::size_t n);

// Throws std::runtime_error when a call of CUDA's runtime failed.
void must(cudaError_t error, const char* what);

struct DeviceBytes {
  explicit DeviceBytes(std::size_t size) {
    void* memory = nullptr;
    must(cudaMalloc(&memory, size), "cudaMalloc");
    data = static_cast<std::uint8_t*>(memory);
  }
  ~DeviceBytes() { cudaFree(data); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  std::vector<std::uint8_t> read(std::size_t offset, std::size_t len) const {
    std::vector<std::uint8_t> bytes(len);
    must(cudaMemcpy(bytes.data(), data + offset, len, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return bytes;
  }

  std::uint8_t* data = nullptr;
};

struct Options {
  bool quick = false;
  bool large = true;
  bool host_data = false;
  bool columns = false;
  bool files = false;
  bool pieces = false;
  std::string only;
  unsigned sample = 1;
  unsigned part = 0;  // of `parts`: the steps whose number is part modulo parts
  unsigned parts = 1;
};

// Whether the next text of those that get a launch of their own is run.
bool sampled(const Options& options);

struct Case {
  const Algorithm* algorithm = nullptr;
  Direction direction = Direction::encrypt;
  Padding padding = Padding::none;
  std::size_t len = 0;
  std::size_t in_shift = 0;   // from a multiple of 256
  std::size_t out_shift = 0;  // ignored in place
  bool in_place = false;
  bool bad_tag = false;
  bool computes_tag = false;  // Message::compute_tag; of GCM-SIV: `iv` is then nonce || tag
  std::size_t aad_len = 0;
  std::size_t tag_len = 16;
  std::vector<std::uint8_t> iv;  // empty: random
  const Key* key = nullptr;      // nullptr: random

  std::string text() const {
    return std::string(algorithm->name) + (direction == Direction::encrypt ? " encrypt" : " decrypt") + " len " +
           std::to_string(len) + (padding == Padding::pkcs7 ? " pkcs7" : "") + " in+" + std::to_string(in_shift) +
           (in_place ? " in place" : " out+" + std::to_string(out_shift)) +
           (algorithm->is_aead() ? " aad " + std::to_string(aad_len) + " tag " + std::to_string(tag_len) : "") +
           (bad_tag ? " bad tag" : "") + " iv " + std::to_string(iv.size());
  }
};

// A new key, which stays until the program ends.
const Key& random_key(const Algorithm& algorithm);

// Where a case's bytes lie in the arena: the same offsets on the device and in the host's copy.
struct Place {
  std::size_t in, out, tag;
};

class Batch {
 public:
  void add(Case c);

  // Runs all cases as one plan on both engines; returns the number of cases that differ.
  int run(Stream stream);

  std::size_t count() const { return cases_.size(); }

 private:
  std::size_t reserve(std::size_t len);

  std::vector<Message> make_messages(std::uint8_t* arena, Memory memory,
                                     const std::vector<std::vector<std::uint8_t>>& aads) const;

  // Decryption of an AEAD needs a tag that matches: encrypts the arena's bytes with the oracle for it.
  void prepare_tags(std::vector<std::uint8_t>& arena, const std::vector<std::vector<std::uint8_t>>& aads) const;

  int compare(const std::vector<std::uint8_t>& expected, const std::vector<std::uint8_t>& got,
              const std::vector<Status>& expected_statuses, const std::vector<Status>& statuses) const;

  std::vector<Case> cases_;
  std::vector<Place> places_;
  std::size_t size_ = 0;
};

// An IV of the usual length.
std::vector<std::uint8_t> random_iv(const Algorithm& algorithm);

Case random_case(const Algorithm& algorithm, Direction direction, std::size_t len);

// The counts of a test: cases run, and cases that differed.
class Tally {
 public:
  explicit Tally(Stream stream) : stream_(stream) {}

  void run(Batch& batch);
  void run_alone(const Case& c);

  // Prints a line: the name, the number of cases, what they were, and whether all were right. Returns the failures.
  int report(std::string_view name, const char* what) const;

 private:
  Stream stream_;
  int failures_ = 0;
  std::size_t count_ = 0;
};

}  // namespace conformance
