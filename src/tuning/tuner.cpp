// SPDX-License-Identifier: Apache-2.0
#include "tuning/tuner.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/error.hpp"
#include "flow/host_transfer.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t message_len = 4096;  // for algorithms of which one message cannot fill an engine
constexpr std::size_t short_len = 64;
constexpr std::size_t short_messages = 2048;
constexpr int sharing_rounds = 3;
constexpr double worth_choosing = 1.05;  // gain needed to leave the default: more than the noise

// The median of the seconds of body(). prepare(i) runs before each and is not counted. Short runs vary more, so they
// are repeated more often.
template <class Prepare, class Body>
double median_seconds(int repetitions, Prepare&& prepare, Body&& body) {
  constexpr double short_run = 1e-3;
  std::vector<double> taken;
  for (int i = 0; i <= repetitions; ++i) {  // the first warms up
    prepare(i);
    const auto start = std::chrono::steady_clock::now();
    body();
    taken.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (i == 1 && repetitions > 1 && taken[1] < short_run) repetitions *= 3;
  }
  taken.erase(taken.begin());
  const auto middle = taken.begin() + static_cast<std::ptrdiff_t>(taken.size() / 2);
  std::nth_element(taken.begin(), middle, taken.end());
  return std::max(*middle, 1e-9);
}

// Keys and IVs do not matter: the time of an engine does not depend on them.
Key make_key(const Algorithm& algorithm) {
  std::vector<std::uint8_t> bytes(algorithm.key_len());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(17 * i + 1);
  return Key(algorithm, bytes);
}

// `count` messages of `len` bytes back to back, each with its own IV.
class Texts {
 public:
  Texts(const Key& key, Direction direction, std::size_t len, std::size_t count)
      : len_(len), ivs_(most_iv_len * count), tags_(16 * count), messages_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      Message& m = messages_[i];
      m.key = &key;
      m.direction = direction;
      m.in_len = m.out_len = len;
      std::uint8_t* const iv = ivs_.data() + most_iv_len * i;
      std::memcpy(iv + 4, &i, sizeof i);  // ChaCha20 counts from the first four bytes
      m.iv = iv;
      m.iv_len = key.algorithm().iv_len;
      if (!key.algorithm().is_aead()) continue;
      m.tag = tags_.data() + 16 * i;
      m.tag_len = 16;
    }
  }

  static constexpr std::size_t most_iv_len = 24;

  std::size_t size() const { return len_ * messages_.size(); }

  void place(const std::uint8_t* in, std::uint8_t* out) {
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      messages_[i].in = in + i * len_;
      messages_[i].out = out + i * len_;
    }
  }

  std::span<const Message> messages() const { return messages_; }

 private:
  std::size_t len_;
  std::vector<std::uint8_t> ivs_;
  std::vector<std::uint8_t> tags_;
  std::vector<Message> messages_;
};

// Where texts lie and which engine runs them: host memory on the CPU, or host memory of a kind through the device.
enum class Route { cpu, pageable, pinned };

// Host memory for texts and results, pageable and pinned: twice the longest text each, so that the caches do not hold
// the texts of the next run.
class HostText {
 public:
  HostText(DeviceEngine& engine, std::size_t most_len)
      : engine_(engine),
        room_(2 * most_len),
        pageable_(2 * room_),
        pinned_(static_cast<std::uint8_t*>(engine.allocate_pinned(2 * room_))) {
    std::memset(pinned_, 0x5a, 2 * room_);
  }
  HostText(const HostText&) = delete;
  HostText& operator=(const HostText&) = delete;
  ~HostText() { engine_.free_pinned(pinned_, 2 * room_, 2 * room_); }

  // Places texts in memory of the route's kind, for each run at another offset.
  void place(Texts& texts, Route route, int run) {
    std::uint8_t* const base = route == Route::pinned ? pinned_ : pageable_.data();
    const std::size_t places = std::max<std::size_t>(1, room_ / std::max<std::size_t>(texts.size(), 4096));
    // Five places further, so that prefetched lines are not the next text.
    const std::size_t offset = 5 * static_cast<std::size_t>(run) % places * std::max<std::size_t>(texts.size(), 4096);
    texts.place(base + offset, base + room_ + offset);
  }

 private:
  DeviceEngine& engine_;
  const std::size_t room_;
  std::vector<std::uint8_t> pageable_;
  std::uint8_t* const pinned_;
};

class Tuner {
 public:
  Tuner(DeviceEngine& device, Engine& cpu, const TunerSettings& settings,
        const std::function<void(const TunerNews&)>& observe)
      : device_(device), cpu_(cpu), settings_(settings), observe_(observe), host_(device, settings.most_len) {
    for (const Algorithm& algorithm : algorithms()) {
      if (!device.offers(algorithm)) continue;
      const auto& wanted = settings.algorithms;
      if (wanted.empty() || std::find(wanted.begin(), wanted.end(), algorithm.name) != wanted.end()) {
        algorithms_.push_back(&algorithm);
      }
    }
  }

  Tuning measure() {
    const std::vector<int> devices = device_.devices_for_host_data();
    steps_ = devices.size() + 1 + 2 * algorithms_.size();
    for (const int device : devices) choose_policies(device);
    choose_transfer_policies();
    tuning_.rates.emplace();
    for (const Algorithm* algorithm : algorithms_) {
      for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
        measure_rates(*algorithm, direction);
      }
    }
    tuning_.origin = "measured on this machine";
    return std::move(tuning_);
  }

 private:
  void tell(const std::string& text) { observe_({text, static_cast<double>(++step_) / static_cast<double>(steps_)}); }

  static std::string in_gb(double rate) {
    std::string text = std::to_string(rate / 1e9);
    return text.substr(0, text.find('.') + 3) + " GB/s";
  }

  // Tries each value of a policy, and keeps the best.
  template <class Choose, class Rate>
  std::string choose_best(int device, const Policy& policy, Choose&& choose, Rate&& rate_of) {
    PolicyChoice best{device, std::string(policy.name), std::string(policy.values[0]), 0, 0};
    std::string news(policy.name);
    for (const std::string_view value : policy.values) {
      choose(policy.name, value);
      const double rate = rate_of();
      news += ' ' + std::string(value) + ": " + in_gb(rate) + ',';
      if (value == policy.values[0]) best.rate = best.rate_of_default = rate;
      if (rate <= best.rate || rate < worth_choosing * best.rate_of_default) continue;
      best.value = value;
      best.rate = rate;
    }
    choose(policy.name, best.value);
    tuning_.choices.push_back(best);
    return news + " chosen " + best.value;
  }

  // Bytes a second in memory of the current device.
  double rate_on_device(std::string_view algorithm, std::uint8_t* text, Stream stream) {
    const Key key = make_key(find_algorithm(algorithm));
    const Texts texts(key, Direction::encrypt, settings_.device_len, 1);
    Message m = texts.messages()[0];
    m.memory = Memory::device;
    m.in = m.out = text;
    m.tag = m.tag_len != 0 ? text + settings_.device_len : nullptr;
    Status status = Status::ok;
    const auto run = [&] {
      device_.run_allocated(make_plan({&m, 1}, device_.tile_units()), {&status, 1}, stream);
      device_.wait(stream);
    };
    return static_cast<double>(settings_.device_len) / median_seconds(settings_.repetitions, [](int) {}, run);
  }

  void choose_policies(int device) {
    const SelectedDevice scope(device_, device);
    const Stream stream = device_.create_stream();
    const std::size_t size = settings_.device_len + 256;
    std::uint8_t* text = nullptr;
    const auto release = [&] {
      if (text != nullptr) device_.deallocate(text, size, size, stream);
      device_.destroy_stream(stream);
    };
    try {
      text = static_cast<std::uint8_t*>(device_.allocate(size, stream));
      device_.clear(text, size, stream);
      std::string news = "device " + std::to_string(device);
      for (const Policy& policy : device_.policies(device)) {
        news += "; " +
                choose_best(
                    device, policy,
                    [&](std::string_view name, std::string_view value) { device_.choose_policy(device, name, value); },
                    [&] { return rate_on_device(policy.algorithm, text, stream); });
      }
      tell(news);
    } catch (...) {
      release();
      throw;
    }
    release();
  }

  void choose_transfer_policies() {
    std::string news = "host transfer";
    for (const Policy& policy : transfer_policies()) {
      const Key key = make_key(find_algorithm(policy.algorithm));
      news += "; " + choose_best(PolicyChoice::of_transfer, policy, &choose_transfer_policy, [&] {
                return static_cast<double>(settings_.most_len) /
                       seconds(Route::pageable, texts_of(key, Direction::encrypt, settings_.most_len));
              });
    }
    tell(news);
  }

  void run(Route route, std::span<const Message> messages) {
    std::vector<Status> statuses(messages.size(), Status::ok);
    if (route == Route::cpu) {
      cpu_.run(make_plan(messages, cpu_.tile_units()), statuses, nullptr);
    } else {
      run_through_device(device_, messages, statuses);
    }
  }

  double seconds(Route route, Texts texts) {
    return median_seconds(
        settings_.repetitions, [&](int run) { host_.place(texts, route, run); }, [&] { run(route, texts.messages()); });
  }

  static bool is_whole(const Algorithm& algorithm, Direction direction) {
    return algorithm.parallel(direction) && algorithm.mode.id != Mode::xts;
  }

  // `len` bytes in one message, or in several where one cannot fill an engine.
  static Texts texts_of(const Key& key, Direction direction, std::size_t len) {
    const std::size_t own_len = is_whole(key.algorithm(), direction) ? len : std::min(message_len, len);
    return {key, direction, own_len, len / own_len};
  }

  Cost measure_cost(Route route, const Key& key, Direction direction) {
    Cost cost;
    cost.message_len = is_whole(key.algorithm(), direction) ? 0 : static_cast<double>(message_len);
    const std::size_t few = std::min(short_messages, settings_.most_len / short_len);
    cost.call = seconds(route, Texts(key, direction, short_len, 1));
    const double together = seconds(route, Texts(key, direction, short_len, few));
    cost.message = std::max(0.0, together - cost.call) / static_cast<double>(few);
    for (std::size_t len = settings_.least_len; len <= settings_.most_len; len *= 4) {
      const double taken = seconds(route, texts_of(key, direction, len));
      cost.points.push_back({static_cast<double>(len), taken});
      if (taken >= settings_.seconds && settings_.seconds > 0) break;
    }
    if (!key.algorithm().parallel(direction)) {
      const std::size_t alone = std::min<std::size_t>(settings_.most_len, 16 * message_len);
      cost.stream = static_cast<double>(alone) / seconds(route, Texts(key, direction, alone, 1));
    }
    return cost;
  }

  // Runs both engines at once on the longest text, with the shares that balance them, and repeats with the shares that
  // follow from the measured times: each share changes how much memory bandwidth and how many cores the other has.
  Together measure_together(Route route, const Key& key, Direction direction, const Rates& rates) {
    const Cost& through = rates.device(route == Route::pinned);
    const auto len = static_cast<std::size_t>(std::min(rates.cpu.points.back().bytes, through.points.back().bytes));
    Texts texts = texts_of(key, direction, len);
    host_.place(texts, route, 0);
    const std::span<const Message> messages = texts.messages();
    const JobPart part = describe(messages)[0];
    const double alone = std::min(seconds_of(part, rates.cpu), seconds_of(part, through));
    std::vector<Status> statuses(messages.size(), Status::ok);
    Together together{1, 1}, best;
    double least = worth_sharing * alone;
    for (int round = 0; round < sharing_rounds; ++round) {
      const Balance balance = find_balance(part, rates.cpu, through, together);
      const std::size_t front = device_len(messages, balance.cpu_share);
      if (balance.seconds >= worth_sharing * alone || front == 0 || front == len) break;
      ShareSeconds sum;
      int runs = 0;
      const double taken = median_seconds(
          settings_.repetitions, [&](int number) { host_.place(texts, route, number); },
          [&] {
            const ShareSeconds shares = run_on_both(device_, cpu_, messages, statuses, front);
            sum.cpu += shares.cpu;
            sum.device += shares.device;
            ++runs;
          });
      const double cpu_share = 1 - static_cast<double>(front) / static_cast<double>(len);
      together = {sum.cpu / runs / seconds_of(part, rates.cpu, cpu_share),
                  sum.device / runs / seconds_of(part, through, 1 - cpu_share)};
      if (taken >= least) continue;
      least = taken;
      best = together;
    }
    return best;
  }

  void measure_rates(const Algorithm& algorithm, Direction direction) {
    const Key key = make_key(algorithm);
    Rates& rates = tuning_.rates->at(algorithm, direction);
    if (algorithm.is_aead() && direction == Direction::decrypt) {
      // The work is the same, and each run would need tags that match.
      rates = tuning_.rates->at(algorithm, Direction::encrypt);
      return tell(std::string(algorithm.name) + " decrypt: as encrypt");
    }
    rates.cpu = measure_cost(Route::cpu, key, direction);
    rates.pageable = measure_cost(Route::pageable, key, direction);
    rates.pinned = measure_cost(Route::pinned, key, direction);
    rates.with_pageable = measure_together(Route::pageable, key, direction, rates);
    rates.with_pinned = measure_together(Route::pinned, key, direction, rates);
    tell(std::string(algorithm.name) + (direction == Direction::encrypt ? " encrypt" : " decrypt") + ": cpu " +
         in_gb(rates.cpu.rate()) + ", device from pageable memory " + in_gb(rates.pageable.rate()) + ", page-locked " +
         in_gb(rates.pinned.rate()) + (rates.with_pageable.pays() ? ", both at once from pageable memory" : "") +
         (rates.with_pinned.pays() ? ", both at once from page-locked" : ""));
  }

  DeviceEngine& device_;
  Engine& cpu_;
  const TunerSettings& settings_;
  const std::function<void(const TunerNews&)>& observe_;
  HostText host_;
  std::vector<const Algorithm*> algorithms_;
  Tuning tuning_;
  std::size_t step_ = 0;
  std::size_t steps_ = 1;
};

}  // namespace

Tuning measure_tuning(DeviceEngine& device, Engine& cpu, const TunerSettings& settings,
                      const std::function<void(const TunerNews&)>& observe) {
  return Tuner(device, cpu, settings, observe).measure();
}

}  // namespace warpcipher
