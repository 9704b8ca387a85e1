// SPDX-License-Identifier: Apache-2.0
// Batches of short messages in device memory through the CUDA engine, with one key and with a key for each message,
// against one message as long as all of them (Harrison 2008, section 7: the overhead of a payload). For each batch:
//
//   call   the host's part: run() until it returns
//   all    from the call of run() until the device is done, and the rate that follows from it
//
// Then the same texts as columnar batches, through run_columns(): with columns and Key objects on the host, and with
// all of them, keys included, in device memory.
//
// The first message, one in the middle and the last are checked against the reference engine. For the time of the
// kernels only, run with --once under a profiler (ncu --metrics gpu__time_duration.sum).
//
//   device_batches [--once] [--columns] [--pages] [--sectors] [--stream-ciphers] [--gcm-siv] [--curve] [--length N]
//   [ALGORITHM]
//
// --columns: those only. --pages: columns of 65,536 messages of 64 KiB. --sectors: columns of data units of 4 KiB and
// of 512 bytes, 4 GiB to 16 MiB of them. --stream-ciphers: columns of ChaCha20 and its AEADs, 4 GiB to 256 MiB.
// --gcm-siv: columns of AES-GCM-SIV, 4 and 1 GiB. --curve: a serial mode, encrypted, 32 to 2^20 messages of 4 KiB.
// --length: columns of up to 2^20 messages of N bytes, 4 GiB at most.
#include <numeric>

#include "core/error.hpp"
#include "device.hpp"
#include "dispatch/run.hpp"

namespace {

using namespace warpcipher;
using bench::Case;
using bench::Texts;

// About 1 GiB each; of 16 blocks a quarter: more messages would only take the host longer.
constexpr Case cases[] = {
    {"aes-128-ctr", 1, std::size_t{1} << 30},
    {"aes-128-ctr", 4096, 16384 * 16},
    {"aes-128-ctr", 4096, 16384 * 16, 0, true},
    {"aes-128-ctr", 131072, 512 * 16},
    {"aes-128-ctr", 131072, 512 * 16, 0, true},
    {"aes-128-ctr", 1 << 20, 16 * 16},
    {"aes-128-ctr", 1 << 20, 16 * 16, 0, true},
    {"aes-128-xts", 262144, 4096},
    {"aes-128-xts", 65536, 4096},
    {"aes-128-xts", 2097152, 512},
    {"aes-128-xts", 524288, 512},
    {"aes-256-gcm", 1, 1024'000'000, 13},
    {"aes-256-gcm", 1'000'000, 1024, 13},
    {"aes-256-gcm", 1'000'000, 1024, 13, true},
    {"aes-128-ctr", 16384, 65536},
    {"aes-128-ctr", 16384, 65536, 0, true},
    {"aes-128-gcm", 16384, 65536, 13},
    {"aes-128-gcm", 16384, 65536, 13, true},
    {"aes-256-xts", 262144, 4096},
    {"aes-256-xts", 262144, 4096, 0, true},
    {"des-cbc", 262144, 4096},
    {"des-cbc", 262144, 4096, 0, false, Direction::decrypt},
    {"des-ede3-cbc", 262144, 4096},
    {"des-ede3-cbc", 262144, 4096, 0, true},
    {"des-ede3-cbc", 262144, 4096, 0, false, Direction::decrypt},
    {"des-ede3-cbc", 262144, 4096, 0, true, Direction::decrypt},
    {"des-ede3-ecb", 262144, 4096},
    {"des-ede3-ecb", 262144, 4096, 0, false, Direction::decrypt},
};

// 4 GiB: so much longer that launches do not count.
constexpr Case pages[] = {
    {"aes-128-ctr", 65536, 65536},
    {"aes-128-ctr", 65536, 65536, 0, true},
    {"aes-128-gcm", 65536, 65536, 13},
    {"aes-128-gcm", 65536, 65536, 13, true},
};

constexpr Case stream_ciphers[] = {
    {"chacha20", 1, std::size_t{1} << 32},
    {"chacha20-poly1305", 1, std::size_t{1} << 32, 13},
    {"chacha20-poly1305", 65536, 65536},
    {"chacha20-poly1305", 65536, 65536, 0, true},
    {"xchacha20-poly1305", 65536, 65536},
    {"chacha20-poly1305", 262144, 16384, 0, true},
    {"chacha20-poly1305", 1 << 20, 4096, 0, true},
    {"chacha20-poly1305", 1'000'000, 1024, 13},
    {"chacha20-poly1305", 1'000'000, 1024, 13, true},
    {"chacha20-poly1305", 1 << 20, 256},
    {"chacha20-poly1305", 1 << 20, 256, 0, true},
};

constexpr Case gcm_siv[] = {
    {"aes-128-gcm-siv", 65536, 65536, 13},  {"aes-128-gcm-siv", 65536, 65536, 13, true},
    {"aes-256-gcm-siv", 65536, 65536, 13},  {"aes-256-gcm-siv", 65536, 65536, 13, true},
    {"aes-128-gcm-siv", 1 << 20, 1024, 13}, {"aes-128-gcm-siv", 1 << 20, 1024, 13, true},
    {"aes-256-gcm-siv", 1 << 20, 1024, 13}, {"aes-256-gcm-siv", 1 << 20, 1024, 13, true},
};

constexpr Case sectors[] = {
    {"aes-128-xts", 1 << 20, 4096}, {"aes-128-xts", 1 << 23, 512},  {"aes-128-xts", 1 << 18, 4096},
    {"aes-128-xts", 1 << 21, 512},  {"aes-128-xts", 1 << 16, 4096}, {"aes-128-xts", 1 << 19, 512},
    {"aes-128-xts", 1 << 14, 4096}, {"aes-128-xts", 1 << 17, 512},  {"aes-128-xts", 1 << 12, 4096},
    {"aes-128-xts", 1 << 15, 512},
};

constexpr Case curve[] = {
    {"aes-128-cbc", 32, 4096},
    {"aes-128-cbc", 256, 4096},
    {"aes-128-cbc", 2048, 4096},
    {"aes-128-cbc", 16384, 4096},
    {"aes-128-cbc", 65536, 4096},
    {"aes-128-cbc", 1 << 18, 4096},
    {"aes-128-cbc", 1 << 18, 4096, 0, true},
    {"aes-128-cbc", 1 << 20, 4096},
    {"aes-256-cbc", 1 << 18, 4096},
};

// The cases of an option. device_only: only as columns in device memory.
struct CaseGroup {
  const char* option;
  std::span<const Case> cases;
  bool device_only;
};

constexpr CaseGroup groups[] = {{"--curve", curve, false},
                                {"--pages", pages, true},
                                {"--sectors", sectors, true},
                                {"--stream-ciphers", stream_ciphers, true},
                                {"--gcm-siv", gcm_siv, true}};

class Bench {
 public:
  Bench(bool once, std::size_t room) : repetitions_(once ? 1 : 7), room_(room), buffers_(room) {}

  void measure_messages(const Case& c) {
    const Texts texts = texts_of(c);
    std::deque<Key> keys;
    const std::vector<Message> messages = texts.messages(keys);
    std::vector<Result> results(messages.size());
    report(texts, "messages", [&] { run("cuda", messages, results, buffers_.stream()); });
  }

  void measure_columns(const Case& c, bool on_device) {
    const Texts texts = texts_of(c);
    const std::size_t count = texts.shape.messages;
    std::vector<std::uint64_t> offsets(count), lengths(count, c.len);
    std::vector<std::uint32_t> key_index(c.own_keys ? count : 0);
    for (std::size_t i = 0; i < count; ++i) offsets[i] = texts.step * i;
    std::iota(key_index.begin(), key_index.end(), 0u);
    std::deque<Key> keys;
    std::vector<const Key*> pointers;
    for (std::size_t k = 0; k < texts.key_count() && !(on_device && c.own_keys); ++k) {
      pointers.push_back(&keys.emplace_back(texts.algorithm, texts.key(k)));
    }
    std::vector<Result> results(count);
    std::vector<std::unique_ptr<bench::Bytes>> copies;
    const auto place = [&]<class T>(const std::vector<T>& values) -> std::span<const T> {
      if (!on_device || values.empty()) return values;
      return copies.emplace_back(bench::Bytes::copy_of(values))->template as<const T>();
    };
    Columns columns;
    columns.direction = c.direction;
    columns.memory = Memory::device;
    columns.columns_memory = on_device ? Memory::device : Memory::host;
    columns.count = count;
    columns.in = {buffers_.in(), texts.step * count};
    columns.out = {buffers_.out(), texts.step * count};
    columns.iv_len = texts.algorithm.iv_len;
    columns.tag_len = texts.algorithm.is_aead() ? bench::tag_len : 0;
    columns.keys = pointers;
    if (pointers.empty()) {
      columns.algorithm = &texts.algorithm;
      columns.key_bytes = place(texts.key_bytes);
    }
    columns.key_index = place(key_index);
    columns.in_offsets = columns.out_offsets = place(offsets);
    columns.in_lengths = place(lengths);
    columns.ivs = place(texts.ivs);
    columns.aad = place(texts.aad);
    const std::span<const Result> there = place(results);
    const std::span<Result> outcome(const_cast<Result*>(there.data()), there.size());
    report(texts, on_device ? "columns on the device" : "columns on the host",
           [&] { run_columns("cuda", columns, outcome, buffers_.stream()); });
  }

  bool wrong() const { return wrong_; }

 private:
  Texts texts_of(const Case& c) const {
    const Texts texts(c, buffers_.in(), buffers_.out());
    if (texts.step > room_ / c.messages) throw std::runtime_error("the buffers are too small");
    return texts;
  }

  // Times `run_batch`, checks what it made, and prints a line. Milliseconds by the host's clock.
  template <class Run>
  void report(const Texts& texts, const char* form, Run&& run_batch) {
    const Case& c = texts.shape;
    std::vector<double> call, all;
    for (int i = 0; i < repetitions_; ++i) {
      bench::must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      const auto start = bench::Clock::now();
      run_batch();
      call.push_back(1e3 * bench::seconds(start, bench::Clock::now()));
      bench::must(cudaStreamSynchronize(buffers_.native()), "cudaStreamSynchronize");
      all.push_back(1e3 * bench::seconds(start, bench::Clock::now()));
    }
    bool good = true;
    for (const std::size_t i : {std::size_t{0}, c.messages / 2, c.messages - 1}) {
      const Key key(texts.algorithm, texts.key(i));
      good = good && bench::is_right(texts.message(i, key));
    }
    wrong_ = wrong_ || !good;
    const double rate = static_cast<double>(c.len) * static_cast<double>(c.messages) / 1e6 / bench::median(all);
    std::printf("%-12s %s %8zu of %10zu B, %-9s %-21s  call %8.2f  all %8.2f ms  %7.1f GB/s  %s\n", c.algorithm,
                bench::name_of(c.direction), c.messages, c.len, c.own_keys ? "own keys," : "one key,", form,
                bench::median(call), bench::median(all), rate, good ? "checked" : "WRONG OUTPUT");
    std::fflush(stdout);
  }

  const int repetitions_;
  const std::size_t room_;
  bench::Buffers buffers_;
  bool wrong_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("device_batches", [&] {
    bool once = false, only_columns = false;
    bool asked[std::size(groups)] = {};
    std::size_t length = 0;
    std::vector<std::string> words;
    bench::Options options("device_batches", &words);
    options.add("--once", once).add("--columns", only_columns).add("--length", length);
    for (std::size_t i = 0; i < std::size(groups); ++i) options.add(groups[i].option, asked[i]);
    options.parse(argc, argv);
    bench::print_devices();
    std::string only = words.empty() ? "" : std::string(find_algorithm(words[0]).name);
    if (length != 0 && only.empty()) only = "chacha20-poly1305";
    constexpr std::size_t mebibyte = std::size_t{1} << 20;
    const std::size_t count = std::min(mebibyte, 4096 * mebibyte / std::max<std::size_t>(1, length));
    const Case of_length[] = {{only.c_str(), count, length}, {only.c_str(), count, length, 0, true}};
    CaseGroup group{"", cases, false};
    if (length != 0) group = {"--length", of_length, true};
    for (std::size_t i = 0; i < std::size(groups); ++i) {
      if (asked[i]) group = groups[i];
    }
    Bench bench(once, (group.cases.data() == cases ? 1100 : 4200) * mebibyte);
    for (const Case& c : group.cases) {
      if (!only.empty() && only != c.algorithm) continue;
      if (!group.device_only && (!only_columns || c.messages == 1)) bench.measure_messages(c);
      if (!group.device_only && c.messages != 1) bench.measure_columns(c, false);
      if (group.device_only || c.messages != 1) bench.measure_columns(c, true);
    }
    return !bench.wrong();
  });
}
