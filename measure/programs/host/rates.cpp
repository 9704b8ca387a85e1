// SPDX-License-Identifier: Apache-2.0
// Rates of the `cuda` engine on data in host memory, from C++: one text as one message or as many of one length that
// lie one after the other, sectors of a disk image say. Medians of the repetitions; what the link moves is measured in
// the same run. Some messages of each, or their beginnings, are checked against the reference engine.
//
//   host_rates [--MiB N] [--repetitions N] [--algorithm NAME] [--size BYTES] [--decrypt] [--in-place] [--pageable]
//
// --size: of a message (the whole text, or as long as a message may be). --decrypt: not for AEADs. Each line has both
// the host transfer alone (run_through_device), and all that a caller's run() does, with its checks of each message.
// --in-place: else the results have a buffer of their own.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/bytes.hpp"
#include "dispatch/run.hpp"
#include "engine/cuda/engine.hpp"
#include "engine/reference/engine.hpp"
#include "memory.hpp"
#include "message/plan.hpp"
#include "transfer/host_transfer.hpp"

namespace {

using namespace warpcipher;
using bench::Clock;
using bench::HostMemory;

constexpr std::size_t tag_len = 16;

struct Options {
  std::size_t MiB = 1024;
  std::size_t repetitions = 7;
  std::string algorithm = "aes-256-xts";
  std::size_t size = 0;  // 0: the whole text
  Direction direction = Direction::encrypt;
  bool in_place = false;
  bool pageable = false;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        algorithm_(find_algorithm(options.algorithm)),
        len_(options.MiB << 20),
        size_(options.size != 0 ? options.size : std::min<std::size_t>(len_, algorithm_.mode.most_text_len)),
        count_(len_ / size_),
        key_(algorithm_, make_key()),
        in_(len_, options.pageable),
        out_(options.in_place ? 1 : len_, options.pageable),
        iv_len_(algorithm_.iv_len),
        ivs_(count_ * iv_len_),
        tags_(algorithm_.is_aead() ? count_ * tag_len : 0) {
    for (std::size_t i = 0; i < len_; i += 8) store_be64(in_.data() + i, i * 0x9e3779b97f4a7c15u);
    for (std::size_t i = 0; i < count_ && iv_len_ >= 8; ++i) store_be64(&ivs_[(i + 1) * iv_len_ - 8], i);
    for (std::size_t i = 0; i < count_; ++i) messages_.push_back(message(i));
  }

  void measure(double link) {
    std::vector<Status> statuses(count_, Status::ok);
    std::vector<Result> results(count_);
    const double alone = rate([&] { run_through_device(cuda_engine(), messages_, statuses); });
    const double all = rate([&] { run("cuda", messages_, results); });
    std::printf(
        "%-12s %s %8zu of %9zu bytes, %s%s: transfer alone %5.1f GB/s (%3.0f%% of the link), run %5.1f (%3.0f%%)\n",
        options_.algorithm.c_str(), options_.direction == Direction::encrypt ? "encrypt" : "decrypt", count_, size_,
        options_.pageable ? "pageable" : "page-locked", options_.in_place ? ", in place" : "", alone,
        100 * alone / link, all, 100 * all / link);
  }

 private:
  std::vector<std::uint8_t> make_key() const {
    std::vector<std::uint8_t> bytes(algorithm_.key_len());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(3 + 7 * i);
    return bytes;
  }

  Message message(std::size_t i) {
    Message m;
    m.key = &key_;
    m.direction = options_.direction;
    m.in = in_.data() + i * size_;
    m.out = options_.in_place ? in_.data() + i * size_ : out_.data() + i * size_;
    m.in_len = m.out_len = size_;
    m.iv = ivs_.data() + i * iv_len_;
    m.iv_len = iv_len_;
    m.tag = tags_.empty() ? nullptr : &tags_[i * tag_len];
    m.tag_len = tags_.empty() ? 0 : tag_len;
    return m;
  }

  template <class Run>
  double rate(Run&& run_once) {
    std::vector<double> times;
    for (std::size_t i = 0; i <= options_.repetitions; ++i) {
      const std::vector<Sample> samples = expect();
      const auto start = Clock::now();
      run_once();
      if (i != 0) times.push_back(bench::seconds(start, Clock::now()));  // the first finds no memory kept
      for (const Sample& sample : samples) {
        const Message& m = messages_[sample.message];
        if (std::memcmp(m.out, sample.expected.data(), sample.expected.size()) != 0) {
          throw std::runtime_error("WRONG OUTPUT");
        }
      }
    }
    return static_cast<double>(len_) / 1e9 / bench::median(times);
  }

  // Whether what becomes of the beginning of a text does not depend on what follows.
  bool begins_alike() const {
    switch (algorithm_.mode.id) {
      case Mode::ecb:
      case Mode::ctr:
      case Mode::gcm:
      case Mode::stream:
      case Mode::poly1305:
        return true;
      default:
        return false;
    }
  }

  // What becomes of some messages, or of the beginning of a long one.
  struct Sample {
    std::size_t message;
    std::vector<std::uint8_t> expected;
  };

  std::vector<Sample> expect() {
    std::vector<Sample> samples;
    for (const std::size_t i : {std::size_t{0}, count_ / 3, count_ / 2, count_ - 1}) {
      Message m = messages_[i];
      constexpr std::size_t most = 1 << 14;
      if (m.in_len > most && !begins_alike()) continue;
      m.in_len = m.out_len = std::min(m.in_len, most);
      std::vector<std::uint8_t> expected(m.in_len);
      std::uint8_t tag[tag_len];
      m.out = expected.data();
      m.tag = tags_.empty() ? nullptr : tag;
      Status status = Status::ok;
      reference_engine().run(make_plan({&m, 1}, reference_engine().tile_units()), {&status, 1}, nullptr);
      samples.push_back({i, std::move(expected)});
    }
    return samples;
  }

  const Options& options_;
  const Algorithm& algorithm_;
  const std::size_t len_, size_, count_;
  const Key key_;
  const HostMemory in_, out_;
  const std::size_t iv_len_;
  std::vector<std::uint8_t> ivs_, tags_;
  std::vector<Message> messages_;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    if (name == "--MiB") {
      options.MiB = std::strtoull(value().c_str(), nullptr, 10);
    } else if (name == "--repetitions") {
      options.repetitions = std::strtoull(value().c_str(), nullptr, 10);
    } else if (name == "--algorithm") {
      options.algorithm = value();
    } else if (name == "--size") {
      options.size = std::strtoull(value().c_str(), nullptr, 10);
    } else if (name == "--decrypt") {
      options.direction = Direction::decrypt;
    } else if (name == "--in-place") {
      options.in_place = true;
    } else if (name == "--pageable") {
      options.pageable = true;
    } else {
      throw std::runtime_error(
          "usage: host_rates [--MiB N] [--repetitions N] [--algorithm NAME] [--size BYTES] [--decrypt] [--in-place] "
          "[--pageable]");
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    if (find_algorithm(options.algorithm).is_aead() && options.direction == Direction::decrypt) {
      throw std::runtime_error("--decrypt: " + options.algorithm + " would need texts with right tags");
    }
    const double link = bench::copy_rate(5);
    std::printf("%s; the link: %.1f GB/s each way at once\n", cuda_engine().devices()[0].c_str(), link);
    Bench(options).measure(link);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "host_rates: %s\n", error.what());
    return 1;
  }
}
