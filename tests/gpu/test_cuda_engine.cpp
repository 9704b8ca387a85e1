// SPDX-License-Identifier: Apache-2.0
// Conformance of the CUDA engine: every algorithm and direction against the oracle (oracle.hpp), over lengths at the
// edges of blocks and tiles, alignments, in place or not, alone or in batches, with both forms of the lane tables. A
// plain program, because the machines with GPUs have nothing but the toolkit:
//
//   test_cuda_engine [OPTION ...]
//
//   --quick            small texts, for compute-sanitizer and the emulated GPU
//   --sample N         only each Nth of the texts that get a launch of their own: compute-sanitizer is slow by launch
//   --no-large         no texts of more than 4 GiB
//   --only ALGORITHM   one algorithm
//   --host-data        only the tests of host data; --columns: of columnar batches; --files: of chunks of files;
//                      --pieces: of texts in pieces
//   --part I/N         the steps whose number is I modulo N
//   --seed N           of the random texts
//
// Prints a line for each algorithm; exits 1 when anything differs.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "algorithms.hpp"
#include "alignments.hpp"
#include "cases.hpp"
#include "columns.hpp"
#include "core/error.hpp"
#include "engine/device_engine.hpp"
#include "file_chunks.hpp"
#include "file_plain.hpp"
#include "file_writes.hpp"
#include "force.hpp"
#include "gcm_siv.hpp"
#include "host_data.hpp"
#include "kernels.hpp"
#include "large.hpp"
#include "message/plan.hpp"
#include "parquet_chunks.hpp"
#include "pieces.hpp"

namespace {

using namespace conformance;

// Memory of the host given as memory of the device is refused.
int test_refusal() {
  std::vector<std::uint8_t> text(64);
  const Key& key = random_key(find_algorithm("aes-128-ecb"));
  Message m;
  m.key = &key;
  m.memory = Memory::device;
  m.in = m.out = text.data();
  m.in_len = m.out_len = text.size();
  Status status = Status::ok;
  try {
    cuda_engine().run(make_plan({&m, 1}, cuda_engine().tile_units()), {&status, 1}, nullptr);
  } catch (const Error& error) {
    const bool right = error.status() == Status::invalid_argument;
    std::printf("%-16s %s: %s\n", "host pointer", right ? "ok" : "FAILED", error.what());
    return right ? 0 : 1;
  }
  std::printf("%-16s FAILED: not refused\n", "host pointer");
  return 1;
}

Options parse(int argc, char** argv) {
  Options options;
  std::uint64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      options.quick = true;
      options.large = false;
    } else if (argument == "--no-large") {
      options.large = false;
    } else if (argument == "--host-data") {
      options.host_data = true;
    } else if (argument == "--files") {
      options.files = true;
    } else if (argument == "--columns") {
      options.columns = true;
    } else if (argument == "--pieces") {
      options.pieces = true;
    } else if (argument == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else if (argument == "--sample" && i + 1 < argc && std::sscanf(argv[i + 1], "%u", &options.sample) == 1 &&
               options.sample > 0) {
      ++i;
    } else if (argument == "--part" && i + 1 < argc &&
               std::sscanf(argv[i + 1], "%u/%u", &options.part, &options.parts) == 2 && options.part < options.parts) {
      ++i;
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::fprintf(
          stderr,
          "usage: %s [--quick] [--sample N] [--no-large] [--only ALGORITHM] [--host-data | --columns | --files | "
          "--pieces] [--part I/N] [--seed N]\n",
          argv[0]);
      std::exit(2);
    }
  }
  generator.seed(seed);
  return options;
}

// GHASH's, POLYVAL among them.
bool hashes(const Algorithm& algorithm) { return algorithm.mode.id == Mode::gcm || algorithm.mode.id == Mode::gcm_siv; }

// Whether the current device can run that form of GHASH.
bool has_ghash(const std::string& form) {
  int device = 0;
  cudaDeviceProp properties{};
  must(cudaGetDevice(&device), "cudaGetDevice");
  must(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  if (form == "warpgroups") return properties.major == 9 && properties.minor == 0;
  return (form != "tensor" && form != "rows") || properties.major == 8 || properties.major == 9;
}

int run_all(const Options& options) {
  const DeviceEngine& engine = cuda_engine();
  if (!engine.unavailable_reason().empty()) {
    std::fprintf(stderr, "cuda engine cannot run here: %s\n", engine.unavailable_reason().c_str());
    return 2;
  }
  for (const std::string& device : engine.devices()) std::printf("%s\n", device.c_str());
  unsigned step = 0;
  const auto is_mine = [&] { return step++ % options.parts == options.part; };
  const auto test_files = [&] {
    return test_file_chunks(options.quick, options.only, is_mine) +
           test_file_writes(options.quick, options.only, is_mine) +
           (options.only.empty() && is_mine() ? test_file_plain(options.quick) + test_parquet_chunks() : 0);
  };
  if (options.files) return test_files() == 0 ? 0 : 1;
  if (options.host_data) return test_host_data(options.quick, options.only, is_mine) == 0 ? 0 : 1;
  Stream stream = cuda_engine().create_stream();
  if (options.columns) return test_columns(options.quick, options.only, is_mine, stream) == 0 ? 0 : 1;
  int failures = 0;
  for (const char* name : {"aes-128-gcm", "aes-192-gcm", "aes-256-gcm", "chacha20-poly1305"}) {
    if (!options.only.empty() && name != options.only) continue;
    if (is_mine()) failures += test_pieces(find_algorithm(name), options, stream);
  }
  if (options.pieces) return failures == 0 ? 0 : 1;
  for (const char* form : {"128", "64"}) {
    force("tables", form);
    std::printf("lane tables of %s KiB\n", form);
    for (const Algorithm& algorithm : algorithms()) {
      if (!options.only.empty() && algorithm.name != options.only) continue;
      if (!cuda_engine().offers(algorithm)) continue;
      if (!is_aes(algorithm.cipher.id) && std::string(form) == "64") continue;  // the form is of AES
      if (!is_mine()) continue;
      const bool thin = options.quick && (std::string(form) == "64" || algorithm.cipher.key_len == 24);
      failures += test_algorithm(algorithm, options, stream, thin);
    }
    if (options.only.empty() && is_mine()) failures += test_mixed(options, stream);
  }
  force("tables", nullptr);
  for (const char* form : {"lanes", "rows", "scalar", "tensor", "warpgroups"}) {
    if (!has_ghash(form)) continue;
    force("ghash", form);
    std::printf("GHASH, %s\n", form);
    for (const Algorithm& algorithm : algorithms()) {
      if (!hashes(algorithm) || (!options.only.empty() && algorithm.name != options.only)) continue;
      if (options.only.empty() && algorithm.key_len() != 16) continue;  // one key size says it all
      if (!is_mine()) continue;
      failures += test_algorithm(algorithm, options, stream);
      failures += test_many_keys(algorithm, options, stream);
      if (std::string(form) == "warpgroups") failures += test_ghash_segments(algorithm, options, stream);
      failures += test_alignments(algorithm, options, stream);
    }
  }
  force("ghash", nullptr);
  for (const char* form : {"chunks", "lanes"}) {
    force("poly1305", form);
    std::printf("Poly1305, %s\n", form);
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.mode.id != Mode::poly1305 || (!options.only.empty() && algorithm.name != options.only)) continue;
      if (is_mine()) failures += test_algorithm(algorithm, options, stream);
      if (is_mine()) failures += test_many_keys(algorithm, options, stream);
      failures += test_host_data(options.quick, std::string(algorithm.name), is_mine);
    }
  }
  force("poly1305", nullptr);
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_stream_cipher(algorithm.cipher.id) || (!options.only.empty() && algorithm.name != options.only)) continue;
    if (is_mine()) failures += test_many_keys(algorithm, options, stream);
    if (is_mine()) failures += test_packed(algorithm, options, stream);
  }
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_aes(algorithm.cipher.id) || !cuda_engine().offers(algorithm)) continue;
    if (!options.only.empty() && algorithm.name != options.only) continue;
    if (is_mine()) failures += test_many_keys(algorithm, options, stream);
    const bool counts = algorithm.mode.id == Mode::ctr || hashes(algorithm);
    if (algorithm.mode.id == Mode::gcm_siv && is_mine()) failures += test_gcm_siv(algorithm, options, stream);
    if (counts && is_mine()) failures += test_packed(algorithm, options, stream);
    const bool thin = options.quick && algorithm.cipher.key_len == 24;
    if (counts && !thin && is_mine()) failures += test_packed_alike(algorithm, options, stream);
    if (!algorithm.parallel(Direction::encrypt) && is_mine()) failures += test_serial(algorithm, options, stream);
    const bool is_hybrid = algorithm.parallel(Direction::decrypt) && algorithm.mode.id != Mode::cfb8;
    if (is_hybrid && is_mine()) failures += test_hybrid_warps(algorithm, options, stream);
    if (is_hybrid && !thin && is_mine()) failures += test_alignments(algorithm, options, stream);
  }
  failures += test_columns(options.quick, options.only, is_mine, stream);
  if (options.only.empty() && is_mine()) failures += test_refusal();
  failures += test_host_data(options.quick, options.only, is_mine);
  failures += test_files();
  if (options.large && is_mine()) failures += test_large(stream, options.only);
  cuda_engine().destroy_stream(stream);
  std::printf(failures == 0 ? "all ok\n" : "%d FAILED\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_all(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "FAILED: %s\n", error.what());
    return 1;
  }
}
