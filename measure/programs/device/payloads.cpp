// SPDX-License-Identifier: Apache-2.0
// The mixed payload of Harrison 2008, section 7.3 (Figure 7): 1024 messages of a serial mode, 16 to 2048 blocks, and
// 1952 of a parallel one, in device memory, in the seven orders of the paper and in random ones. Each order runs twice:
//
//   library   as every caller's: the plan puts groups and messages into an order of its own
//   by hand   the plan has them as the client did, and each group waits for the one before: the rate that the order
//             would give if the library had none of its own
//
// Times are the host's, from the call until the device is done, medians over turns in which every one runs once: all
// orders the one way, then all the other, so that neither finds its messages in the caches where the other has just
// read them, which is worth 25 us. `call` is the time of the library's until it returns, `plan` the part of it before
// the engine runs. Also: the time of each half by itself, which no order can beat. A sample of each order's messages
// is checked against the reference engine.
//
//   device_payloads [--turns N] [--random N]
#include <numeric>

#include "device.hpp"

namespace {

using namespace warpcipher;

struct Item {
  std::size_t blocks;
  bool serial;
};
using Order = std::vector<Item>;

constexpr std::size_t serial_count = 1024, large_count = 960, small_count = 992;
constexpr std::size_t group_len = 32;  // threads of the paper's GPU that run together

template <class... Parts>
Order join(const Parts&... parts) {
  Order order;
  (order.insert(order.end(), parts.begin(), parts.end()), ...);
  return order;
}

// The orders that python/warpcipher/lab/papers/harrison2008_mixed.py makes for the paper's kernel, which says why.
std::vector<std::pair<std::string, Order>> make_orders(std::mt19937& random, int shuffled) {
  Order serial;
  for (std::size_t i = 0; i < serial_count; ++i) serial.push_back({std::size_t{16} << i % 8, true});
  Order by_size = serial;
  std::stable_sort(by_size.begin(), by_size.end(), [](const Item& a, const Item& b) { return a.blocks < b.blocks; });
  std::shuffle(serial.begin(), serial.end(), random);
  const Order large(large_count, Item{512, false}), small(small_count, Item{32, false});
  const auto interleave = [&](const Order& between) {
    Order order;
    for (std::size_t i = 0; i < between.size(); ++i) {
      if (i < serial_count) order.push_back(serial[i]);
      order.push_back(between[i]);
    }
    return order;
  };
  constexpr std::size_t together = 4 * group_len;
  Order third;
  for (std::size_t i = 0; i < serial_count; i += together) {
    third.insert(third.end(), serial.begin() + static_cast<std::ptrdiff_t>(i),
                 serial.begin() + static_cast<std::ptrdiff_t>(i + together));
    third.insert(third.end(), large_count * together / serial_count, large[0]);
    third.insert(third.end(), small_count * together / serial_count, small[0]);
  }
  Order fourth = join(serial, large, small);
  std::shuffle(fourth.begin(), fourth.end(), random);
  std::vector<Order> pieces;
  for (std::size_t i = 0; i < serial_count; i += group_len) {
    const auto first = serial.begin() + static_cast<std::ptrdiff_t>(i);
    pieces.emplace_back(first, first + group_len);
  }
  for (const Order& rest : {large, small}) {
    for (const Item& item : rest) pieces.push_back({item});
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  Order fifth;
  for (const Order& piece : pieces) fifth.insert(fifth.end(), piece.begin(), piece.end());
  std::vector<std::pair<std::string, Order>> orders{
      {"1: one serial message, one other", interleave(join(large, small))},
      {"2: the same, short others first", interleave(join(small, large))},
      {"3: serial messages by 128", third},
      {"4: random", fourth},
      {"5: random, serial messages by 32", fifth},
      {"6: serial messages first", join(serial, large, small)},
      {"7: the same, by length", join(by_size, large, small)},
      {"7, longest first", join(Order(by_size.rbegin(), by_size.rend()), large, small)},
      {"parallel messages first", join(large, small, by_size)},
  };
  for (int i = 0; i < shuffled; ++i) {
    std::shuffle(fourth.begin(), fourth.end(), random);
    orders.emplace_back("random " + std::to_string(i + 1), fourth);
  }
  return orders;
}

// A plan whose groups and messages stand as they were given, and follow each other.
Plan plan_by_hand(std::span<const Message> messages) {
  Plan plan{messages, cuda_engine().tile_units(), {}, 0};
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    const Algorithm& algorithm = messages[i].algorithm();
    auto group =
        std::find_if(plan.groups.begin(), plan.groups.end(), [&](const Group& g) { return g.algorithm == &algorithm; });
    if (group == plan.groups.end()) {
      const bool parallel = algorithm.parallel(Direction::encrypt);
      plan.groups.push_back({&algorithm, Direction::encrypt, parallel, {}, {}, 0});
      group = plan.groups.end() - 1;
      if (parallel) group->first_tile.push_back(0);
    }
    group->messages.push_back(i);
    if (!group->parallel) continue;
    group->first_tile.push_back(group->first_tile.back() +
                                (messages[i].units() + plan.tile_units - 1) / plan.tile_units);
  }
  return plan;
}

class Bench {
 public:
  std::vector<Message> place(const Order& order) {
    std::vector<std::uint8_t>& ivs = ivs_.emplace_back(16 * order.size());
    std::vector<Message> messages(order.size());
    std::size_t offset = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      store_be64(ivs.data() + 16 * i, i);
      Message& m = messages[i];
      m.key = order[i].serial ? &cbc_ : &ctr_;
      m.memory = Memory::device;
      m.in = buffers_.in() + offset;
      m.out = buffers_.out() + offset;
      m.in_len = m.out_len = 16 * order[i].blocks;
      m.iv = ivs.data() + 16 * i;
      m.iv_len = 16;
      offset += m.in_len;
    }
    if (offset > text_len) throw std::runtime_error("the buffers are too small");
    return messages;
  }

  struct Times {
    double plan;
    double call;
    double all;
  };

  // Milliseconds.
  Times run(std::span<const Message> messages, bool by_hand) {
    statuses_.assign(messages.size(), Status::ok);
    double plan_ms = 0;
    const bench::CallTime time = bench::time_call(buffers_, [&] {
      const auto start = bench::Clock::now();
      check_messages(messages);
      const Plan plan = by_hand ? plan_by_hand(messages) : make_plan(messages, cuda_engine().tile_units());
      plan_ms = 1e3 * bench::seconds(start, bench::Clock::now());
      cuda_engine().run(plan, statuses_, buffers_.stream());
    });
    return {plan_ms, time.call, time.all};
  }

  bool is_right(std::span<const Message> messages, bool by_hand) {
    bench::must(cudaMemset(buffers_.out(), 0, text_len), "cudaMemset");
    run(messages, by_hand);
    for (std::size_t i = 0; i < messages.size(); i += 1 + messages.size() / 20) {
      if (!bench::is_right(messages[i])) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t text_len = std::size_t{17} << 20;

  const Key cbc_{find_algorithm("aes-128-cbc"), std::vector<std::uint8_t>(16, 0x2b)};
  const Key ctr_{find_algorithm("aes-128-ctr"), std::vector<std::uint8_t>(16, 0x7e)};
  bench::Buffers buffers_{text_len};
  std::deque<std::vector<std::uint8_t>> ivs_;
  std::vector<Status> statuses_;
};

void measure(int turns, int shuffled) {
  std::mt19937 random(7);
  Bench bench;
  struct Row {
    std::string name;
    std::vector<Message> messages;
    std::vector<double> plan{}, call{}, library{}, by_hand{};
  };
  std::vector<Row> rows;
  const auto orders = make_orders(random, shuffled);
  rows.reserve(orders.size() + 2);
  const auto add = [&](const std::string& name, const Order& order) {
    const Row& row = rows.emplace_back(Row{name, bench.place(order)});
    if (!bench.is_right(row.messages, false) || !bench.is_right(row.messages, true))
      throw std::runtime_error(name + ": WRONG OUTPUT");
  };
  for (const auto& [name, order] : orders) add(name, order);
  for (const bool serial : {true, false}) {
    Order half;
    std::copy_if(orders[6].second.begin(), orders[6].second.end(), std::back_inserter(half),
                 [&](const Item& item) { return item.serial == serial; });
    add(serial ? "serial messages only" : "parallel messages only", half);
  }
  for (int turn = -2; turn < turns; ++turn) {
    for (Row& row : rows) {
      const auto library = bench.run(row.messages, false);
      if (turn < 0) continue;
      row.plan.push_back(library.plan);
      row.call.push_back(library.call);
      row.library.push_back(library.all);
    }
    for (Row& row : rows) {
      const auto hand = bench.run(row.messages, true);
      if (turn >= 0) row.by_hand.push_back(hand.all);
    }
  }
  double worst = 0, sum = 0, best_by_hand = 1e9;
  for (const Row& row : rows) {
    std::size_t bytes = 0;
    for (const Message& m : row.messages) bytes += m.in_len;
    const double library = bench::median(row.library), hand = bench::median(row.by_hand);
    std::printf("%-34s library %6.3f ms (plan %5.3f, call %5.3f), %5.2f GB/s   by hand %6.3f ms, %5.2f GB/s\n",
                row.name.c_str(), library, bench::median(row.plan), bench::median(row.call),
                static_cast<double>(bytes) * 1e-6 / library, hand, static_cast<double>(bytes) * 1e-6 / hand);
    if (&row - rows.data() >= static_cast<std::ptrdiff_t>(orders.size())) continue;
    worst = std::max(worst, library);
    sum += library;
    best_by_hand = std::min(best_by_hand, hand);
  }
  const double mean = sum / static_cast<double>(orders.size());
  std::printf("over the best by hand the library takes %.1f%% on the average, %.1f%% in its slowest order\n",
              100 * (mean / best_by_hand - 1), 100 * (worst / best_by_hand - 1));
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("device_payloads", [&] {
    int turns = 25, shuffled = 3;
    bench::Options("device_payloads").add("--turns", turns).add("--random", shuffled).parse(argc, argv);
    bench::print_devices();
    measure(turns, shuffled);
    return true;
  });
}
