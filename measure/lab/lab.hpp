// SPDX-License-Identifier: Apache-2.0
// A paper's file offers variants, each a way to do the paper's work, which are made into a job for one key. The package
// warpcipher_measure checks and times them, and makes the tables.
//
// Kernels here follow papers, not this project's rules: many look secrets up in tables, in a time that depends on
// them. Nothing outside the lab can reach them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/stream.hpp"

namespace warpcipher::lab {

// Whole numbers by name, each taken once with its limits; one that no variant takes is an error.
class Parameters {
 public:
  Parameters() = default;
  explicit Parameters(std::map<std::string, std::int64_t> given) : given_(std::move(given)) {}

  // The value, or `standard` if none was given. Throws Error{invalid_argument} outside `least` to `most`, and unless it
  // is a multiple of `unit`.
  std::int64_t take(const std::string& name, std::int64_t standard, std::int64_t least, std::int64_t most,
                    std::int64_t unit = 1);

  // Throws Error{invalid_argument} if a parameter was given that no variant took.
  void check_all_taken() const;

 private:
  std::map<std::string, std::int64_t> given_;
  std::vector<std::string> known_;
};

// A job is made from this. key and iv are copied; the job wipes its copies when it is destroyed. iv: for a job of many
// messages, their descriptions, which hold their IVs.
struct Setting {
  std::span<const std::uint8_t> key;
  std::span<const std::uint8_t> iv;
  Parameters& parameters;
  int device;
};

// The data of one run: in host memory for a variant of the CPU, else in memory of the job's GPU. in and out may be
// equal.
struct Data {
  const std::uint8_t* in;
  std::size_t in_len;
  std::uint8_t* out;
  std::size_t out_len;
};

// Named figures, such as the registers of a thread.
using Facts = std::vector<std::pair<std::string, std::int64_t>>;

// A variant made ready. run: returns when the work is done on a CPU, or enqueued on a stream of the job's GPU; throws
// Error. facts: the runtime's figures of the kernel; none for the CPU.
struct Job {
  std::function<void(const Data&, Stream)> run;
  std::function<Facts()> facts = [] { return Facts(); };
};

struct Variant {
  std::string_view name;
  std::string_view description;
  bool needs_gpu;
  bool constant_time;           // false: its time depends on keys or data
  Job (*make)(const Setting&);  // nullptr: not in this build, for the reason in `absent`
  std::string_view absent = "this build has no CUDA";
};

// A job of the CPU that a function does.
template <class Run>
Job host_job(Run run) {
  return {[run = std::move(run)](const Data& data, Stream) { run(data); }};
}

// A variant that needs a GPU, whose `make` only a build with CUDA has.
#if WARPCIPHER_HAS_CUDA
#define WARPCIPHER_LAB_GPU(name, description, constant_time, ...) {name, description, true, constant_time, __VA_ARGS__}
#else
#define WARPCIPHER_LAB_GPU(name, description, constant_time, ...) \
  {                                                               \
    name, description, true, constant_time, {}                    \
  }
#endif

struct Paper {
  std::string_view name;
  std::vector<Variant> variants;
};

// Every paper, in the order of the list.
std::span<const Paper> papers();

// Throws Error{invalid_argument} for unknown names, Error{engine_unavailable} for a variant that this build lacks.
const Paper& find_paper(std::string_view name);
Job make_job(std::string_view paper, std::string_view variant, const Setting& setting);

// One function a paper, in the paper's file; some have a part in a file of its own.
std::vector<Variant> billava2022();
std::vector<Variant> harrison2008();
std::vector<Variant> iwai2012();
std::vector<Variant> quirem2013();
std::vector<Variant> yang2007();
std::vector<Variant> harrison2008_payloads();
std::vector<Variant> yang2007_blocks();

// For jobs on whole blocks of 16 bytes: throws Error{invalid_argument} unless out is as long as in, in whole blocks.
void check_blocks(const Data& data);

// For jobs without a text that write 4 bytes a thread: the number of threads. Throws Error{invalid_argument} unless
// they fill whole blocks of threads.
std::size_t whole_blocks_of_words(const Data& data, std::size_t block_threads);

// Throws Error{invalid_argument}, which says what was expected, unless `len` is one of `expected`.
void check_len(const char* what, std::size_t len, std::initializer_list<std::size_t> expected);

}  // namespace warpcipher::lab
