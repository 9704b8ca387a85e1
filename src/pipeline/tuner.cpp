// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tuner.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "core/error.hpp"
#include "pipeline/staging.hpp"

namespace warpcipher {
namespace {

constexpr std::size_t message_len = 4096;  // where one message cannot fill an engine
constexpr std::size_t short_len = 64;
constexpr std::size_t short_messages = 2048;

template <class Body>
double best_seconds(int repetitions, Body&& body) {
  double best = 0;
  for (int i = 0; i <= repetitions; ++i) {  // the first warms up
    const auto start = std::chrono::steady_clock::now();
    body();
    const double taken = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i == 1 || (i > 1 && taken < best)) best = taken;
  }
  return std::max(best, 1e-9);
}

// Keys and IVs are of no account for the time: engines are constant in time.
Key make_key(const Algorithm& algorithm) {
  std::vector<std::uint8_t> bytes(algorithm.key_len());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(17 * i + 1);
  return Key(algorithm, bytes);
}

// `count` messages of `len` bytes back to back, in place, each with an IV of its own.
class Texts {
 public:
  Texts(const Key& key, Direction direction, std::uint8_t* text, std::size_t len, std::size_t count)
      : ivs_(16 * count), tags_(16 * count), messages_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      Message& m = messages_[i];
      m.key = &key;
      m.direction = direction;
      m.in = m.out = text + i * len;
      m.in_len = m.out_len = len;
      std::memcpy(ivs_.data() + 16 * i, &i, sizeof i);
      m.iv = ivs_.data() + 16 * i;
      const IvRule rule = key.algorithm().mode.iv;
      m.iv_len = rule == IvRule::none ? 0 : rule == IvRule::any ? 12 : key.algorithm().block_len();
      if (!key.algorithm().is_aead()) continue;
      m.tag = tags_.data() + 16 * i;
      m.tag_len = 16;
    }
  }

  std::span<const Message> messages() const { return messages_; }

 private:
  std::vector<std::uint8_t> ivs_;
  std::vector<std::uint8_t> tags_;
  std::vector<Message> messages_;
};

enum class Way { cpu, pageable, pinned };

// Host memory for texts: pageable, or page-locked by the engine.
class HostText {
 public:
  HostText(DeviceEngine& engine, std::size_t size)
      : engine_(engine),
        size_(size),
        pageable_(size),
        pinned_(static_cast<std::uint8_t*>(engine.allocate_pinned(size))) {
    std::memset(pinned_, 0x5a, size);
  }
  HostText(const HostText&) = delete;
  HostText& operator=(const HostText&) = delete;
  ~HostText() { engine_.free_pinned(pinned_, size_, size_); }

  std::uint8_t* data(Way way) { return way == Way::pinned ? pinned_ : pageable_.data(); }

 private:
  DeviceEngine& engine_;
  std::size_t size_;
  std::vector<std::uint8_t> pageable_;
  std::uint8_t* pinned_;
};

class Tuner {
 public:
  Tuner(DeviceEngine& device, Engine& cpu, const TunerSettings& settings,
        const std::function<void(const TunerNews&)>& observe)
      : device_(device), cpu_(cpu), settings_(settings), observe_(observe), host_(device, settings.host_len) {
    for (const Algorithm& algorithm : algorithms()) {
      const auto& wanted = settings.algorithms;
      if (wanted.empty() || std::find(wanted.begin(), wanted.end(), algorithm.name) != wanted.end()) {
        algorithms_.push_back(&algorithm);
      }
    }
  }

  Tuning measure() {
    steps_ = 2 * algorithms_.size();
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

  void run(Way way, std::span<const Message> messages) {
    std::vector<Status> statuses(messages.size(), Status::ok);
    if (way == Way::cpu) {
      cpu_.run(make_plan(messages, cpu_.tile_units()), statuses, nullptr);
    } else {
      run_through_device(device_, messages, statuses);
    }
  }

  double seconds(Way way, std::span<const Message> messages) {
    return best_seconds(settings_.repetitions, [&] { run(way, messages); });
  }

  Cost measure_cost(Way way, const Key& key, Direction direction) {
    const bool parallel = key.algorithm().parallel(direction);
    std::uint8_t* const text = host_.data(way);
    Cost cost;
    const std::size_t few = std::min(short_messages, settings_.host_len / short_len);
    cost.call = seconds(way, Texts(key, direction, text, short_len, 1).messages());
    const double together = seconds(way, Texts(key, direction, text, short_len, few).messages());
    cost.message = std::max(0.0, together - cost.call) / static_cast<double>(few);
    for (std::size_t len = settings_.host_len / 128; len <= settings_.host_len; len *= 4) {
      const bool whole = parallel && key.algorithm().mode.id != Mode::xts;
      const std::size_t own_len = whole ? len : std::min(message_len, len);
      const Texts texts(key, direction, text, own_len, len / own_len);
      const double taken = seconds(way, texts.messages());
      const double lists = whole ? 0 : cost.message * static_cast<double>(len / own_len);
      cost.points.push_back({static_cast<double>(len), std::max(taken - lists, 0.1 * taken)});
      if (taken >= settings_.seconds && settings_.seconds > 0) break;
    }
    if (!parallel) {
      const std::size_t alone = std::min<std::size_t>(settings_.host_len, 16 * message_len);
      cost.stream = static_cast<double>(alone) / seconds(way, Texts(key, direction, text, alone, 1).messages());
    }
    return cost;
  }

  void measure_rates(const Algorithm& algorithm, Direction direction) {
    const Key key = make_key(algorithm);
    Rates& rates = tuning_.rates->at(algorithm, direction);
    if (algorithm.is_aead() && direction == Direction::decrypt) {
      // The same work; and tags that match would have to be made for each run anew.
      rates = tuning_.rates->at(algorithm, Direction::encrypt);
      return tell(std::string(algorithm.name) + " decrypt: as encrypt");
    }
    rates.cpu = measure_cost(Way::cpu, key, direction);
    rates.pageable = measure_cost(Way::pageable, key, direction);
    rates.pinned = measure_cost(Way::pinned, key, direction);
    tell(std::string(algorithm.name) + (direction == Direction::encrypt ? " encrypt" : " decrypt") + ": cpu " +
         in_gb(rates.cpu.rate()) + ", device from pageable memory " + in_gb(rates.pageable.rate()) + ", page-locked " +
         in_gb(rates.pinned.rate()));
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
