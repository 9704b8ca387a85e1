// SPDX-License-Identifier: Apache-2.0
// Rates of the `cuda` engine on data in host memory, from C++: one text as one message or as many of one length that
// lie one after the other, such as the sectors of a disk image. Medians of the repetitions; the rate of the link is
// measured in the same run. Some messages of each, or their beginnings, are checked against the reference engine.
//
//   host_rates [--MiB N] [--repetitions N] [--algorithm NAME] [--size BYTES] [--decrypt] [--in-place] [--pageable]
//
// --MiB: a fraction may do. --size: of a message (the whole text, or as long as a message may be). --decrypt: not for
// AEADs. Each line has both the host transfer only (run_through_device), and all that a caller's run() does, with its
// checks of each message.
// --in-place: else the results have a buffer of their own.
#include "device.hpp"
#include "dispatch/run.hpp"
#include "flow/host_transfer.hpp"

namespace {

using namespace warpcipher;

// Milliseconds, the median. The results are checked each time.
template <class Run>
double time_of(const std::vector<Message>& messages, std::size_t repetitions, Run&& run_once) {
  constexpr std::size_t most = 1 << 14;
  std::vector<double> times;
  for (std::size_t i = 0; i <= repetitions; ++i) {
    std::vector<std::pair<const Message*, std::vector<std::uint8_t>>> samples;
    for (const std::size_t k : {std::size_t{0}, messages.size() / 3, messages.size() / 2, messages.size() - 1}) {
      const Message& m = messages[k];
      if (m.in_len > most && m.algorithm().mode.id == Mode::gcm_siv) continue;
      samples.emplace_back(&m, bench::by_reference(m, std::min(m.in_len, most)));
      samples.back().second.resize(std::min(m.in_len, most));
    }
    const auto start = bench::Clock::now();
    run_once();
    if (i != 0) times.push_back(1e3 * bench::seconds(start, bench::Clock::now()));  // the first finds no memory kept
    for (const auto& [message, expected] : samples) {
      if (bench::read(message->out, expected.size(), Memory::host) != expected)
        throw std::runtime_error("WRONG OUTPUT");
    }
  }
  return bench::median(times);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("host_rates", [&] {
    double mib = 1024;
    std::size_t repetitions = 7, size = 0;
    std::string name = "aes-256-xts";
    bool decrypts = false, in_place = false, pageable = false;
    bench::Options("host_rates")
        .add("--MiB", mib)
        .add("--repetitions", repetitions)
        .add("--algorithm", name)
        .add("--size", size)
        .add("--decrypt", decrypts)
        .add("--in-place", in_place)
        .add("--pageable", pageable)
        .parse(argc, argv);
    const Algorithm& algorithm = find_algorithm(name);
    if (algorithm.is_aead() && decrypts) {
      throw std::runtime_error("--decrypt: " + name + " would need texts with right tags");
    }
    bench::print_devices();
    const double link = bench::copy_rate(5);
    const auto len = static_cast<std::size_t>(mib * (1 << 20));
    if (size == 0) size = std::min<std::size_t>(len, algorithm.mode.most_text_len);
    const auto where = pageable ? bench::Bytes::Where::pageable : bench::Bytes::Where::pinned;
    const bench::Bytes in(len, where), out(in_place ? 1 : len, where);
    for (std::size_t i = 0; i < len; i += 8) store_be64(in.data() + i, i * 0x9e3779b97f4a7c15u);
    std::vector<std::uint8_t> tags(len / size * bench::tag_len);
    const Direction direction = decrypts ? Direction::decrypt : Direction::encrypt;
    const bench::Texts texts({name.c_str(), len / size, size, 0, false, direction},
                             {in.data(), in_place ? in.data() : out.data(), tags.data(), Memory::host},
                             std::max<std::size_t>(algorithm.iv_len, 8) - 8);
    std::deque<Key> keys;
    const std::vector<Message> messages = texts.messages(keys);
    std::vector<Status> statuses(messages.size(), Status::ok);
    std::vector<Result> results(messages.size());
    const double transfer =
        time_of(messages, repetitions, [&] { run_through_device(cuda_engine(), messages, statuses); });
    const double all = time_of(messages, repetitions, [&] { run("cuda", messages, results); });
    const auto rate = [&](double ms) { return static_cast<double>(size * messages.size()) / 1e6 / ms; };
    std::printf("the link: %.1f GB/s each way at once\n", link);
    std::printf(
        "%-12s %s %8zu of %9zu bytes, %s%s: transfer only %5.1f GB/s, %.3f ms (%3.0f%% of the link), run %5.1f, "
        "%.3f ms (%3.0f%%)\n",
        name.c_str(), bench::name_of(direction), messages.size(), size, pageable ? "pageable" : "page-locked",
        in_place ? ", in place" : "", rate(transfer), transfer, 100 * rate(transfer) / link, rate(all), all,
        100 * rate(all) / link);
    return true;
  });
}
