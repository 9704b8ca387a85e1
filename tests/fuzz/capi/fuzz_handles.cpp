// SPDX-License-Identifier: Apache-2.0
// The calls of the C ABI that use a state or a list, in any order.
#include "fuzz_messages.hpp"

namespace {

struct BatchFree {
  void operator()(wc_batch* batch) const { wc_batch_free(batch); }
};

}  // namespace

// The calls of a batch in any order, with handles that are missing. A handle that is freed at the end may be at work.
void fuzz_batch(Input& input) {
  const std::vector<AnyKey> keys = any_keys(input);
  std::vector<Parts> parts(8);
  std::vector<wc_message> messages;
  wc_batch* made = nullptr;
  const wc_status born = wc_batch_new(input.chance(100) ? nullptr : &made, any_engine(input));
  REQUIRE(born == WC_OK || born == WC_INVALID_ARGUMENT);
  REQUIRE((made != nullptr) == (born == WC_OK));
  const std::unique_ptr<wc_batch, BatchFree> handle(made);
  bool started = false, waited = false;
  wc_status outcome = WC_OK;
  for (std::size_t steps = input.below(16); steps > 0; --steps) {
    wc_batch* batch = input.chance(40) ? nullptr : made;
    switch (input.below(6)) {
      case 0:
      case 1: {
        if (messages.size() == parts.size()) break;
        const wc_message m = any_message(input, keys, parts[messages.size()]);
        std::size_t index = SIZE_MAX;
        const bool no_message = input.chance(40);
        const wc_status added = wc_batch_add(batch, input.chance(2) ? nullptr : &index, no_message ? nullptr : &m);
        REQUIRE(added == WC_OK || added == WC_INVALID_ARGUMENT);
        REQUIRE(added != WC_OK || (batch != nullptr && !started && !no_message));
        REQUIRE(index == SIZE_MAX || index == messages.size());
        if (added == WC_OK) messages.push_back(m);
        break;
      }
      case 2: {
        const wc_status status = wc_batch_start(batch, nullptr);
        REQUIRE(status == WC_OK || status == WC_INVALID_ARGUMENT);
        REQUIRE((status == WC_OK) == (batch != nullptr && !started));
        started = started || status == WC_OK;
        break;
      }
      case 3: {
        int done = -1;
        int* out = input.chance(40) ? nullptr : &done;
        const bool given = batch != nullptr && out != nullptr;
        REQUIRE((wc_batch_query(out, batch) == WC_OK) == given);
        REQUIRE(given ? done == 0 || done == 1 : done == -1);
        REQUIRE(!given || !waited || done == 1);
        break;
      }
      case 4: {
        const wc_status status = wc_batch_wait(batch);
        if (batch == nullptr || !started) {
          REQUIRE(status == WC_INVALID_ARGUMENT);
          break;
        }
        REQUIRE(!waited || status == outcome);
        waited = true;
        outcome = status;
        break;
      }
      default: {
        wc_result result = {WC_ENGINE_FAILURE, SIZE_MAX};
        const std::size_t index = input.chance(10) ? SIZE_MAX : input.below(9);
        const wc_status status = wc_batch_result(input.chance(40) ? nullptr : &result, batch, index);
        REQUIRE(status == WC_OK || status == WC_INVALID_ARGUMENT);
        if (status != WC_OK) {
          REQUIRE(result.written == SIZE_MAX);
          break;
        }
        REQUIRE(batch != nullptr && started && index < messages.size());
        check_result(result, messages[index], parts[index]);
      }
    }
  }
  if (!waited) return;
  for (std::size_t i = 0; is_refused(outcome) && i < messages.size(); ++i) check_untouched(parts[i]);
}

// Lists, with an index or a name that may be none.
void fuzz_lists(Input& input) {
  wc_engine_info engine = {};
  const std::size_t index = input.chance(8) ? SIZE_MAX : input.below(2 * wc_engine_count());
  const wc_status listed = wc_engine_at(input.chance(20) ? nullptr : &engine, index);
  REQUIRE((listed == WC_OK) == (engine.name != nullptr));
  const AnyKey key = any_key(input);
  int constant = -1;
  const wc_status told = wc_engine_constant_time(input.chance(20) ? nullptr : &constant, any_engine(input),
                                                 input.chance(8) ? "aes" : key.info.name);
  REQUIRE(told == WC_OK || told == WC_INVALID_ARGUMENT);
  REQUIRE((told == WC_OK) == (constant == 0 || constant == 1));
}

// Lengths that no memory has, in the calls of one message: each refuses them before it looks at what they describe.
void fuzz_lengths(Input& input) {
  const AnyKey key = any_key(input);
  if (key.handle == nullptr) return;
  const std::size_t huge = impossible_len(input);
  const Buffer in(64, paint);
  Buffer out(128, paint);
  std::size_t iv_len = any_iv_len(input, key.info);
  std::size_t in_len = 32, aad_len = 0;
  std::size_t* const lengths[] = {&in_len, &iv_len, &aad_len};
  *lengths[input.below(key.info.is_aead ? 3 : 2)] = huge;
  const std::size_t out_len = in_len != huge ? out.size() : input.chance(2) ? SIZE_MAX : in_len;
  wc_status status = WC_OK;
  if (key.info.is_aead) {
    const auto call = input.chance(2) ? wc_seal : wc_open;
    status = call(key.handle.get(), out.data(), out_len, in.data(), in_len, in.data(), iv_len, in.data(), aad_len);
  } else {
    const auto call = input.chance(2) ? wc_encrypt : wc_decrypt;
    status = call(key.handle.get(), out.data(), out_len, nullptr, in.data(), in_len, in.data(), iv_len,
                  any_padding(input, key.info));
  }
  REQUIRE(status == WC_INVALID_ARGUMENT);
  REQUIRE(all_are(out, paint));
}
