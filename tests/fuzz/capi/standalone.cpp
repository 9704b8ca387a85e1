// SPDX-License-Identifier: Apache-2.0
// Runs a libFuzzer harness without libFuzzer, for compilers that have none and for a short run that is the same each
// time:
//
//   fuzz_capi                     RUNS inputs from SEED (environment; 20000 and 1 by default)
//   fuzz_capi FILE...             these inputs, to look at what a fuzzer found
//
// An input is random bytes, or the one before with some bytes changed. The input that runs when the process dies is in
// crash-input.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::uint8_t> current;

// Called by the sanitizers before they end the process, and for abort().
void keep_current() {
  if (std::FILE* file = std::fopen("crash-input", "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
  }
}

void on_abort(int) {
  keep_current();
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

unsigned long setting(const char* name, unsigned long usual) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoul(text, nullptr, 10) : usual;
}

void run_current() { LLVMFuzzerTestOneInput(current.data(), current.size()); }

}  // namespace

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __asan_on_error() { keep_current(); }
#endif

int main(int argc, char** argv) {
  std::signal(SIGABRT, on_abort);
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "cannot read %s\n", argv[i]);
      return EXIT_FAILURE;
    }
    current.assign(std::istreambuf_iterator<char>(file), {});
    run_current();
  }
  if (argc > 1) return EXIT_SUCCESS;

  const unsigned long runs = setting("RUNS", 20000);
  std::mt19937_64 random(setting("SEED", 1));
  for (unsigned long run = 0; run < runs; ++run) {
    if (run % 4 == 0) {
      current.resize(random() % 600);
      for (std::uint8_t& byte : current) byte = static_cast<std::uint8_t>(random());
    } else if (!current.empty()) {
      for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
        current[random() % current.size()] = static_cast<std::uint8_t>(random());
      }
    }
    run_current();
  }
  std::printf("%lu inputs\n", runs);
  return EXIT_SUCCESS;
}
