// SPDX-License-Identifier: Apache-2.0
// Key search for the Python package: key spaces, tests of keys, and tasks that run ranges of key numbers. Where they
// run and their records are decided in python/warpcipher/keysearch.
#include "search/searcher.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind.hpp"
#include "core/bytes.hpp"
#include "core/error.hpp"
#include "core/wipe.hpp"
#include "gil.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

using search::BlockPair;
using search::KeyNumber;
using search::KeySpace;
using search::KeyTest;

constexpr std::size_t number_len = KeyNumber::bits / 8;

// ValueError for numbers that no key has.
KeyNumber to_number(nb::int_ value) {
  nb::object bytes;
  try {
    bytes = value.attr("to_bytes")(number_len, "little");
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_OverflowError)) throw;
    refuse("a key number is negative or larger than any key space");
  }
  const auto* data = reinterpret_cast<const std::uint8_t*>(nb::cast<nb::bytes>(bytes).c_str());
  KeyNumber number;
  for (std::size_t i = 0; i < KeyNumber::limbs; ++i) number.set_limb(i, load_le64(data + 8 * i));
  return number;
}

nb::object from_number(const KeyNumber& number) {
  std::uint8_t bytes[number_len];
  for (std::size_t i = 0; i < KeyNumber::limbs; ++i) store_le64(bytes + 8 * i, number.limb(i));
  return nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type))
      .attr("from_bytes")(nb::bytes(bytes, sizeof bytes), "little");
}

CipherId find_cipher(std::string_view name) {
  std::string known;
  for (const CipherInfo& info : cipher_list) {
    if (info.name == name) return info.id;
    known += (known.empty() ? "" : ", ") + std::string(info.name);
  }
  refuse("unknown cipher '", name.substr(0, 64), "': expected one of ", known);
}

void check_len(std::span<const std::uint8_t> bytes, std::size_t expected, const char* name) {
  if (bytes.size() == expected) return;
  refuse(name, " has ", bytes.size(), " bytes, expected ", expected);
}

using CandidateEntry = std::pair<std::size_t, std::vector<std::pair<std::uint8_t, std::uint8_t>>>;

class KeySpaceObject {
 public:
  KeySpaceObject(std::string_view cipher, nb::handle value, nb::handle known,
                 const std::vector<CandidateEntry>& lists) {
    const Operand value_bytes(value, "value", Operand::Use::read);
    const Operand known_bytes(known, "known", Operand::Use::read);
    search::KeyTemplate key_template;
    key_template.cipher = find_cipher(cipher);
    const std::size_t key_len = search::cipher_info(key_template.cipher).key_len;
    check_len(value_bytes.bytes(), key_len, "value");
    check_len(known_bytes.bytes(), key_len, "known");
    std::copy_n(value_bytes.bytes().data(), key_len, key_template.value.begin());
    std::copy_n(known_bytes.bytes().data(), key_len, key_template.known.begin());
    for (const CandidateEntry& entry : lists) {
      search::CandidateList list{entry.first, {}};
      for (const auto& [candidate, cost] : entry.second) list.candidates.push_back({candidate, cost});
      key_template.lists.push_back(std::move(list));
    }
    space_ = std::make_shared<const KeySpace>(key_template);
  }

  const std::shared_ptr<const KeySpace>& shared() const { return space_; }

  nb::bytes key_at(nb::int_ value) const {
    const KeyNumber number = to_number(value);
    if (number >= space_->size()) refuse("the key number is not below the space's size");
    SecretBytes key(space_->key_len());
    space_->key_at(number, key.data());
    return nb::bytes(key.data(), key.size());
  }

  nb::object number_of(nb::handle key) const {
    const Operand bytes(key, "key", Operand::Use::read);
    check_len(bytes.bytes(), space_->key_len(), "key");
    const auto number = space_->number_of(bytes.bytes().data());
    return number ? from_number(*number) : nb::none();
  }

 private:
  std::shared_ptr<const KeySpace> space_;
};

using PairFields = std::tuple<bool, nb::bytes, nb::bytes, nb::bytes>;

class KeyTestObject {
 public:
  KeyTestObject(std::string_view cipher, const std::vector<PairFields>& pair_fields) {
    const CipherId id = find_cipher(cipher);
    const std::size_t block_len = search::cipher_info(id).block_len;
    std::vector<BlockPair> pairs(pair_fields.size());
    for (std::size_t i = 0; i < pair_fields.size(); ++i) {
      const auto& [decrypt, in, expected, mask] = pair_fields[i];
      pairs[i].decrypt = decrypt;
      fill(pairs[i].in, in, block_len, "in");
      fill(pairs[i].expected, expected, block_len, "expected");
      fill(pairs[i].mask, mask, block_len, "mask");
    }
    test_ = std::make_shared<const KeyTest>(id, pairs);
  }

  const std::shared_ptr<const KeyTest>& shared() const { return test_; }

  bool passes(nb::handle key) const {
    const Operand bytes(key, "key", Operand::Use::read);
    check_len(bytes.bytes(), search::cipher_info(test_->cipher()).key_len, "key");
    return test_->passes(bytes.bytes().data());
  }

  // The same blocks, of which another key is the right one.
  KeyTestObject planted(nb::handle key) const {
    const Operand bytes(key, "key", Operand::Use::read);
    check_len(bytes.bytes(), search::cipher_info(test_->cipher()).key_len, "key");
    std::vector<BlockPair> pairs(test_->pairs().begin(), test_->pairs().end());
    for (BlockPair& pair : pairs) {
      search::transform_block(test_->cipher(), bytes.bytes().data(), pair.decrypt, pair.in.data(),
                              pair.expected.data());
    }
    return KeyTestObject(std::make_shared<const KeyTest>(test_->cipher(), pairs));
  }

 private:
  explicit KeyTestObject(std::shared_ptr<const KeyTest> test) : test_(std::move(test)) {}

  static void fill(std::array<std::uint8_t, search::max_block_len>& block, const nb::bytes& bytes,
                   std::size_t block_len, const char* name) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.c_str());
    check_len({data, bytes.size()}, block_len, name);
    std::copy_n(data, block_len, block.begin());
  }

  std::shared_ptr<const KeyTest> test_;
};

// A prepared task, which one thread runs and any thread may cancel.
class SearchTaskObject {
 public:
  SearchTaskObject(std::string_view searcher, std::size_t device, const KeySpaceObject& space,
                   const KeyTestObject& test) {
    const GilReleased released;
    search::Searcher& found = search::find_searcher(searcher);
    const std::size_t count = found.devices().size();
    if (device >= count) {
      refuse("device is ", device, ": searcher '", searcher, "' has ", count, ", numbered from 0");
    }
    if (space.shared()->cipher() != test.shared()->cipher()) {
      refuse("the key space and the test are of different ciphers");
    }
    space_ = space.shared();
    test_ = test.shared();
    task_ = found.prepare(space_, test_, device);
  }

  std::uint64_t preferred_count() const { return task_->preferred_count(); }

  // A searcher may report a key that passes only the first pair: each hit is tested against all pairs here.
  nb::tuple run(nb::int_ first, std::uint64_t count) {
    const KeyNumber number = to_number(first);
    if (count == 0 || count > std::uint64_t{1} << 63 || number >= space_->size() ||
        space_->size() - number < KeyNumber(count)) {
      refuse("the range of ", count, " keys leaves the key space");
    }
    std::vector<KeyNumber> hits;
    std::uint64_t tested = 0;
    std::size_t reported = 0;
    {
      const GilReleased released;
      tested = task_->run(number, count, hits, cancel_);
      reported = hits.size();
      SecretBytes key(space_->key_len());
      std::erase_if(hits, [&](const KeyNumber& hit) {
        space_->key_at(hit, key.data());
        return !test_->passes(key.data());
      });
      std::sort(hits.begin(), hits.end());
    }
    nb::list list;
    for (const KeyNumber& hit : hits) list.append(from_number(hit));
    return nb::make_tuple(tested, list, reported - hits.size());
  }

  void cancel() { cancel_ = true; }

 private:
  std::shared_ptr<const KeySpace> space_;
  std::shared_ptr<const KeyTest> test_;
  std::unique_ptr<search::SearchTask> task_;
  std::atomic<bool> cancel_{false};
};

nb::list list_searchers() {
  nb::list list;
  for (const search::Searcher* searcher : search::searchers()) {
    nb::dict entry;
    entry["name"] = searcher->name();
    entry["description"] = searcher->description();
    entry["usable"] = searcher->unavailable_reason().empty();
    entry["reason"] = searcher->unavailable_reason();
    nb::list devices;
    for (const std::string& device : searcher->devices()) devices.append(device);
    entry["devices"] = nb::tuple(devices);
    list.append(entry);
  }
  return list;
}

nb::list list_ciphers() {
  nb::list list;
  for (const CipherInfo& info : cipher_list) list.append(nb::make_tuple(info.name, info.key_len, info.block_len));
  return list;
}

}  // namespace

void bind_search(nb::module_& m) {
  nb::class_<KeySpaceObject>(m, "KeySpace", "The keys that fit a template, numbered from 0.")
      .def(nb::init<std::string_view, nb::handle, nb::handle, const std::vector<CandidateEntry>&>(), nb::arg("cipher"),
           nb::arg("value"), nb::arg("known"), nb::arg("lists"),
           nb::sig("def __init__(self, cipher: str, value: typing_extensions.Buffer, known: typing_extensions.Buffer, "
                   "lists: collections.abc.Sequence[tuple[int, collections.abc.Sequence[tuple[int, int]]]]) -> None"))
      .def_prop_ro(
          "size", [](const KeySpaceObject& self) { return from_number(self.shared()->size()); },
          nb::sig("def size(self) -> int"))
      .def_prop_ro("log2_size", [](const KeySpaceObject& self) { return self.shared()->log2_size(); })
      .def_prop_ro("free_bits", [](const KeySpaceObject& self) { return self.shared()->free_bits().size(); })
      .def_prop_ro("lists", [](const KeySpaceObject& self) { return self.shared()->lists().size(); })
      .def_prop_ro("log2_equivalents", [](const KeySpaceObject& self) { return self.shared()->log2_equivalents(); })
      .def("key_at", &KeySpaceObject::key_at, nb::arg("number"), "The key of a number; DES keys get odd parity.")
      .def("number_of", &KeySpaceObject::number_of, nb::arg("key"),
           nb::sig("def number_of(self, key: typing_extensions.Buffer) -> int | None"),
           "The number of a key; None where it does not fit.");
  nb::class_<KeyTestObject>(m, "KeyTest", "Distinguishes the right key: (decrypt, in, expected, mask) for each block.")
      .def(nb::init<std::string_view, const std::vector<PairFields>&>(), nb::arg("cipher"), nb::arg("pairs"))
      .def_prop_ro("bits", [](const KeyTestObject& self) { return self.shared()->bits(); })
      .def_prop_ro("first_bits", [](const KeyTestObject& self) { return self.shared()->first_bits(); })
      .def("passes", &KeyTestObject::passes, nb::arg("key"),
           nb::sig("def passes(self, key: typing_extensions.Buffer) -> bool"))
      .def("planted", &KeyTestObject::planted, nb::arg("key"),
           nb::sig("def planted(self, key: typing_extensions.Buffer) -> KeyTest"),
           "The same blocks, of which this key is the right one: for self-tests.");
  nb::class_<SearchTaskObject>(m, "SearchTask", "A search prepared for one device. One thread runs it at a time.")
      .def(nb::init<std::string_view, std::size_t, const KeySpaceObject&, const KeyTestObject&>(), nb::arg("searcher"),
           nb::arg("device"), nb::arg("space"), nb::arg("test"))
      .def_prop_ro("preferred_count", &SearchTaskObject::preferred_count)
      .def("run", &SearchTaskObject::run, nb::arg("first"), nb::arg("count"),
           nb::sig("def run(self, first: int, count: int) -> tuple[int, list[int], int]"),
           "How many keys from `first` were tested (fewer than `count` when cancelled), which of them pass all pairs, "
           "in order, and how many pass the first pair.")
      .def("cancel", &SearchTaskObject::cancel, "Makes run return soon, from any thread, now and ever after.");
  m.def("searchers", &list_searchers, nb::sig("def searchers() -> list[dict[str, typing.Any]]"));
  m.def("ciphers", &list_ciphers, nb::sig("def ciphers() -> list[tuple[str, int, int]]"),
        "Name, key and block size in bytes.");
}

}  // namespace warpcipher::python
