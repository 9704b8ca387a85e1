// SPDX-License-Identifier: Apache-2.0
// Blocks of KV caches on a GPU: sealed from the pieces in which tensors have them, and opened into these.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>
#include <vector>

#include "bind.hpp"
#include "core/bytes.hpp"
#include "dispatch/run.hpp"
#include "engine/device_engine.hpp"
#include "errors.hpp"
#include "flow/slot_memory.hpp"
#include "gil.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// python/warpcipher/kv/vault.py has the format: a head, whose last bytes are the nonce, ciphertext and tag.
constexpr std::size_t nonce_len = gcm_plain_iv_len;

nb::object make_heads(nb::handle prefix, std::uint64_t first, std::size_t count) {
  const Operand given(prefix, "prefix", Operand::Use::read);
  const std::size_t head_len = given.size() + nonce_len;
  nb::object heads = new_bytes(count * head_len);
  std::uint8_t* to = bytes_of(heads);
  for (std::size_t i = 0; i < count; ++i, to += head_len) {
    std::copy_n(given.data(), given.size(), to);
    store_be32(to + given.size(), 0);
    store_be64(to + given.size() + 4, first + i);
  }
  return heads;
}

// The numbers of blocks, from 0 to count - 1, as 64-bit integers.
nb::object read_numbers(const nb::list& ids, std::uint64_t count, bool are_distinct) {
  nb::object numbers = new_bytes(sizeof(std::uint64_t) * ids.size());
  std::vector<bool> were_there(are_distinct ? count : 0);
  std::uint8_t* to = bytes_of(numbers);
  for (const nb::handle item : ids) {
    if (PyBool_Check(item.ptr())) throw_type_error("ids is of bool: expected the numbers of blocks");
    const nb::object index = PyLong_Check(item.ptr()) ? nb::borrow(item) : index_of(item, "an item of ids");
    const std::uint64_t number = PyLong_AsUnsignedLongLong(index.ptr());
    if (PyErr_Occurred() != nullptr || number >= count) {
      PyErr_Clear();
      throw nb::value_error(
          ("ids has " + std::string(nb::str(index).c_str()) + ": there are " + std::to_string(count) + " blocks")
              .c_str());
    }
    if (are_distinct) {
      if (were_there[number]) throw nb::value_error("ids has a block twice: a block is opened once");
      were_there[number] = true;
    }
    std::memcpy(to, &number, sizeof number);
    to += sizeof number;
  }
  return numbers;
}

// The heads of rows, which begin `step` bytes apart; their sessions, each once; and for each head the number of its
// session, or -1 where the head does not begin as ours do: None if all are of one session.
nb::tuple read_heads(std::uintptr_t rows, std::size_t step, std::size_t rows_count, nb::handle magic_object,
                     std::size_t session_len, std::optional<std::tuple<bool, int, std::uintptr_t>> on_gpu) {
  const Operand magic(magic_object, "magic", Operand::Use::read);
  const std::size_t head_len = magic.size() + session_len + nonce_len;
  std::optional<SlotMemory> slot;  // of heads that come from the device
  if (on_gpu && rows_count != 0) {
    const auto [is_on_device, device, cuda_stream] = *on_gpu;
    const auto stream = reinterpret_cast<Stream>(cuda_stream);
    const DeviceScope scope(device);
    DeviceEngine& engine = usable_cuda_engine();
    const GilReleased released;
    if (is_on_device) {
      slot.emplace(engine);
      std::uint8_t* const received = slot->pinned(head_len * rows_count);
      engine.copy_rows_to_host(received, reinterpret_cast<const void*>(rows), step, head_len, rows_count, stream);
      rows = reinterpret_cast<std::uintptr_t>(received);
      step = head_len;
    }
    if (is_on_device || !engine.is_done(stream)) engine.wait(stream);
  }
  const nb::object heads = new_bytes(rows_count * head_len);
  nb::list sessions;
  std::vector<const std::uint8_t*> found;
  std::vector<std::int64_t> numbers(rows_count, -1);
  for (std::size_t i = 0; i < rows_count; ++i) {
    std::uint8_t* const head = bytes_of(heads) + i * head_len;
    std::copy_n(reinterpret_cast<const std::uint8_t*>(rows) + i * step, head_len, head);
    if (!std::equal(magic.data(), magic.data() + magic.size(), head)) continue;
    const std::uint8_t* const session = head + magic.size();
    std::size_t count = found.size();  // back from the last: neighbours mostly are of one session
    while (count != 0 && !std::equal(session, session + session_len, found[count - 1])) --count;
    if (count == 0) {
      found.push_back(session);
      sessions.append(nb::bytes(session, session_len));
      count = found.size();
    }
    numbers[i] = static_cast<std::int64_t>(count) - 1;
  }
  const bool are_one = std::all_of(numbers.begin(), numbers.end(), [](std::int64_t number) { return number == 0; });
  if (are_one && rows_count != 0) return nb::make_tuple(heads, sessions, nb::none());
  nb::list each;
  for (const std::int64_t number : numbers) each.append(number);
  return nb::make_tuple(heads, sessions, each);
}

// Blocks of a call that this one takes: [first, end). Row number `first_row` is the first of the memory.
struct Part {
  std::size_t first, end, first_row;
};

// The AAD of each block of a part: a common beginning, 8 bytes of position, and its hash.
class Aads {
 public:
  Aads(nb::handle prefix, const nb::list& hashes, std::span<const std::uint64_t> positions, const Part& part) {
    const Operand common(prefix, "aad", Operand::Use::read);
    if (hashes.size() < part.end) throw nb::value_error("hashes does not have one for each block");
    ends_.reserve(part.end - part.first);
    bytes_.reserve((part.end - part.first) * (common.size() + usual_len));
    for (std::size_t i = part.first; i < part.end; ++i) {
      const nb::object item = hashes[i];
      const Operand hash(item, "hash", Operand::Use::read);
      const std::size_t begin = bytes_.size();
      bytes_.resize(begin + common.size() + position_len + hash.size());
      std::uint8_t* const to = std::copy_n(common.data(), common.size(), bytes_.data() + begin);
      store_be64(to, positions.empty() ? 0 : positions[i]);
      std::copy_n(hash.data(), hash.size(), to + position_len);
      ends_.push_back(bytes_.size());
    }
  }

  std::span<const std::uint8_t> of(std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::span(bytes_).subspan(begin, ends_[i] - begin);
  }

 private:
  static constexpr std::size_t position_len = 8, usual_len = 64;  // of a position and its hash

  std::vector<std::uint8_t> bytes_;
  std::vector<std::size_t> ends_;
};

// Memory of the current device for the work of a stream. It never has secrets.
class Staged {
 public:
  Staged(std::size_t size, Stream stream) : size_(size), stream_(stream) {
    if (size != 0) data_ = static_cast<std::uint8_t*>(usable_cuda_engine().allocate(size, stream));
  }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  ~Staged() {
    if (data_ != nullptr) usable_cuda_engine().deallocate(data_, size_, 0, stream_);
  }

  std::uint8_t* data() const { return data_; }
  void take(const void* host) const { usable_cuda_engine().copy_to_device(data_, host, size_, stream_); }
  void give(void* host) const { usable_cuda_engine().copy_to_host(host, data_, size_, stream_); }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_;
  Stream stream_;
};

nb::object crypt_blocks(std::string_view name, nb::handle keys_object, nb::handle key_index_object, nb::handle memory,
                        nb::handle rows_object, const nb::tuple& layout, nb::handle blocks_object,
                        nb::handle heads_object, const nb::tuple& identity, nb::handle verdicts, int device,
                        std::uintptr_t cuda_stream, const std::tuple<std::size_t, std::size_t, std::size_t>& range) {
  const bool decrypt = !verdicts.is_none();
  const auto place = decrypt ? nb::cast<std::uintptr_t>(verdicts) : 0;
  const bool waits = decrypt && place == 0;
  const Keys keys(find_algorithm(name), keys_object);
  const Integers key_index(key_index_object, "key_index"), rows(rows_object, "rows"), blocks(blocks_object, "blocks");
  const Integers addresses(layout[0], "places"), positions(identity[2], "positions");
  const Operand sealed(memory, "sealed", decrypt ? Operand::Use::read : Operand::Use::write);
  const Operand heads(heads_object, "heads", Operand::Use::read);
  const std::size_t all = blocks.values().size();
  const Part part{std::get<0>(range), std::get<1>(range), std::get<2>(range)};
  if (part.first > part.end || part.end > all) throw nb::value_error("a part of other blocks");
  const std::size_t count = part.end - part.first;
  if (count == 0) return new_bytes(0);
  check_given(key_index_object, key_index, "key_index", all, "blocks");
  check_given(rows_object, rows, "rows", all, "blocks");
  check_given(identity[2], positions, "positions", all, "blocks");
  const Aads aads(identity[0], nb::cast<nb::list>(identity[1]), positions.values(), part);
  std::vector<PiecePlace> places(addresses.values().size() / 2);
  for (std::size_t p = 0; p < places.size(); ++p) {
    places[p] = {reinterpret_cast<std::uint8_t*>(addresses.values()[2 * p]),
                 static_cast<std::int64_t>(addresses.values()[2 * p + 1])};
  }
  Pieces pieces{places, nb::cast<std::size_t>(layout[1]), blocks.values().subspan(part.first, count)};
  const std::size_t head_len = heads.size() / all;
  const std::size_t row_len = head_len + pieces.text_len() + full_tag_len;
  if (head_len < nonce_len || heads.size() % all != 0) throw nb::value_error("sealed blocks without heads");
  if (!decrypt) pieces.heads = heads.bytes().subspan(head_len * part.first, head_len * count);
  const auto stream = reinterpret_cast<Stream>(cuda_stream);
  const DeviceScope scope(device);
  const bool is_on_host = sealed.device() == host_device;
  const Staged staged(is_on_host ? sealed.size() : 0, stream), words(waits ? 4 * count : 0, stream);
  std::uint8_t* const first_row = is_on_host ? staged.data() : sealed.data();
  std::vector<Message> messages(count);
  for (std::size_t i = part.first; i < part.end; ++i) {
    const std::uint64_t row = (rows_object.is_none() ? i : rows.values()[i]) - part.first_row;
    const std::uint64_t key = key_index_object.is_none() ? 0 : key_index.values()[i];
    if (row >= sealed.size() / row_len || key >= keys.pointers().size()) {
      throw nb::value_error("a row or a key that is not there");
    }
    Message& m = messages[i - part.first];
    m.key = keys.pointers()[key];
    m.direction = decrypt ? Direction::decrypt : Direction::encrypt;
    m.memory = Memory::device;
    m.out = first_row + row * row_len + head_len;
    m.in = m.out;
    m.in_len = m.out_len = pieces.text_len();
    m.iv = heads.data() + (i + 1) * head_len - nonce_len;
    m.iv_len = nonce_len;
    m.aad = aads.of(i - part.first).data();
    m.aad_len = aads.of(i - part.first).size();
    m.tag = m.out + m.in_len;
    m.tag_len = full_tag_len;
  }
  std::vector<std::uint32_t> found(waits ? count : 0);
  {
    const GilReleased released;
    if (is_on_host && decrypt) staged.take(sealed.data());
    run_pieces(
        messages, pieces,
        waits ? reinterpret_cast<std::uint32_t*>(words.data()) : reinterpret_cast<std::uint32_t*>(place) + part.first,
        stream);
    if (is_on_host && !decrypt) staged.give(sealed.data());
    if (waits) words.give(found.data());
    if (waits) usable_cuda_engine().wait(stream);
  }
  if (waits) {
    const nb::object good = new_bytes(count);
    std::copy(found.begin(), found.end(), bytes_of(good));
    return good;
  }
  if (is_on_host || !layout[2].is_none()) keep_until_done({nb::borrow(memory), layout[2]}, device, stream);
  return nb::none();
}

}  // namespace

void bind_kv(nb::module_& m) {
  m.def("kv_heads", &make_heads, nb::arg("prefix"), nb::arg("first"), nb::arg("count"),
        nb::sig("def kv_heads(prefix: bytes, first: int, count: int) -> bytes"),
        "Heads of sealed blocks: the prefix, and 12 bytes that count from first on.");
  m.def("kv_numbers", &read_numbers, nb::arg("ids"), nb::arg("count"), nb::arg("are_distinct"),
        nb::sig("def kv_numbers(ids: list[object], count: int, are_distinct: bool) -> bytes"),
        "Numbers of blocks as 64-bit integers. Throws TypeError, or ValueError for one that is not below count, or, "
        "if they are to be distinct, comes twice.");
  m.def("kv_read_heads", &read_heads, nb::arg("rows"), nb::arg("step"), nb::arg("count"), nb::arg("magic"),
        nb::arg("session_size"), nb::arg("on_gpu").none(),
        nb::sig("def kv_read_heads(rows: int, step: int, count: int, magic: bytes, session_size: int, on_gpu: "
                "tuple[bool, int, int] | None) -> tuple[bytes, list[bytes], list[int] | None]"),
        "The heads of rows, whose addresses are `step` apart; their sessions; and for each the number of its session, "
        "or -1 where it has not that magic, or None if all have one session. on_gpu: whether they lie in memory of a "
        "GPU, its number, and the stream to wait for.");
  m.def(
      "kv_crypt", &crypt_blocks, nb::arg("algorithm"), nb::arg("keys"), nb::arg("key_index").none(), nb::arg("sealed"),
      nb::arg("rows").none(), nb::arg("layout"), nb::arg("blocks"), nb::arg("heads"), nb::arg("identity"),
      nb::arg("verdicts").none(), nb::arg("device"), nb::arg("cuda_stream"), nb::arg("part"),
      nb::sig("def kv_crypt(algorithm: str, keys: list[Key], key_index: list[int] | None, sealed: Span, rows: object, "
              "layout: tuple[object, int, object] | None, blocks: object, heads: bytes, identity: tuple[bytes, "
              "object, object], verdicts: int | None, device: int, cuda_stream: int, part: tuple[int, int, int]) -> "
              "bytes | None"),
      "Seals blocks of tensors of a GPU to rows of sealed, there or in host memory, with verdicts None; or opens them, "
      "and enqueues a word for each in the array at that address on the device: 1 if it is good, else 0. Waits for "
      "nothing, but with verdicts 0, for these, and returns them. "
      "part: first and end of the blocks to take, and the number of the first row in sealed. "
      "layout: address of block 0 and step to the next for each piece of a block, their size, and what must live on "
      "until the stream has passed; "
      "identity: the beginning of each AAD, hashes, and positions.");
}

}  // namespace warpcipher::python
