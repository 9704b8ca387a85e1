// SPDX-License-Identifier: Apache-2.0
// Keys, and one message of any algorithm.
#include <cstring>
#include <optional>
#include <string>

#include "bind.hpp"
#include "core/wipe.hpp"
#include "dispatch/run.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "mode/algorithm.hpp"
#include "operand.hpp"
#include "run_one.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

void init_key(Key* self, std::string_view algorithm, nb::handle key) {
  const Algorithm& found = find_algorithm(algorithm);
  const Operand bytes(key, "key", Operand::Use::read);
  new (self) Key(found, bytes.bytes());
}

nb::object crypt_to_bytes(const Request& request, std::string_view engine, const Operand& in, const Operand& iv,
                          const Operand& aad) {
  if (in.device() != host_device) throw nb::value_error("out is needed for data on a GPU");
  const std::size_t size = output_len(request, in.size());
  nb::object result = new_bytes(size);
  const Message message = make_message(request, in, bytes_of(result), size, iv, aad);
  return shortened(std::move(result), run_one(message, engine, nullptr, host_device));
}

nb::object crypt(nb::handle_t<Key> key_object, bool decrypt, bool padded, std::string_view engine, nb::handle data,
                 nb::handle out, nb::handle iv, nb::handle aad, nb::handle tag_length, std::uintptr_t stream) {
  const Key& key = nb::cast<const Key&>(key_object);
  const Request request = make_request(key, decrypt, padded, tag_length);
  const Operand in(data, "data", Operand::Use::read);
  const Operand iv_bytes(iv, "iv", Operand::Use::read_or_none);
  const Operand aad_bytes(aad, "aad", Operand::Use::read_or_none);
  const auto pointer = reinterpret_cast<Stream>(stream);
  if (out.is_none()) return crypt_to_bytes(request, engine, in, iv_bytes, aad_bytes);
  const Operand target(out, "out", Operand::Use::write);
  check_places(in, target);
  const Message message = make_message(request, in, target.data(), target.size(), iv_bytes, aad_bytes);
  const std::size_t written = run_one(message, engine, pointer, in.device());
  if (returns_early(message)) {
    keep_until_done({nb::borrow(key_object), nb::borrow(data), nb::borrow(out), nb::borrow(iv), nb::borrow(aad)},
                    in.device(), pointer);
  }
  return nb::int_(written);
}

// A Cipher's work on bytes, bytearrays and memoryviews. On 64 bytes most of a call is the cost of passing
// arguments, so this keeps what all calls of a Cipher share.
class PlainCipher {
 public:
  PlainCipher(nb::handle_t<Key> key, bool padded, std::string engine)
      : key_object_(nb::borrow(key)),
        key_(nb::cast<const Key&>(key)),
        padding_(padding_of(key_.algorithm(), padded)),
        engine_(std::move(engine)) {}

  nb::object crypt(Direction direction, nb::handle data, nb::handle out, nb::handle iv, nb::handle aad,
                   nb::handle tag_length) const {
    if (!is_plain(data) || (!out.is_none() && !is_plain(out))) return nb::none();
    const Request request{key_, direction, padding_, tag_len_of(key_.algorithm(), tag_length)};
    const Operand in(data, "data", Operand::Use::read);
    const Operand iv_bytes(iv, "iv", Operand::Use::read_or_none);
    const Operand aad_bytes(aad, "aad", Operand::Use::read_or_none);
    if (out.is_none()) return crypt_to_bytes(request, engine_, in, iv_bytes, aad_bytes);
    const Operand target(out, "out", Operand::Use::write);
    const Message message = make_message(request, in, target.data(), target.size(), iv_bytes, aad_bytes);
    const std::size_t written = run_one(message, engine_, nullptr, host_device);
    if (written == target.size()) return nb::borrow(out);
    return nb::int_(written);
  }

 private:
  const nb::object key_object_;
  const Key& key_;
  const Padding padding_;
  const std::string engine_;
};

template <Direction direction>
nb::object crypt_plain(const PlainCipher& self, nb::handle data, nb::handle out, nb::handle iv, nb::handle aad,
                       nb::handle tag_length) {
  return self.crypt(direction, data, out, iv, aad, tag_length);
}

}  // namespace

void bind_cipher(nb::module_& m) {
  nb::class_<Key>(m, "Key",
                  "A key bound to an algorithm, with what the engines derive from it. Make one when many calls or "
                  "messages share it. The bytes are copied, and wiped with the object; they cannot be read back.")
      .def("__init__", &init_key, nb::arg("algorithm"), nb::arg("key").none(),  // for a refusal by name
           nb::sig("def __init__(self, algorithm: str, key: object) -> None"),
           "ValueError: the algorithm is unknown, the key has another length than it takes, or the halves of an XTS "
           "key are equal.")
      .def_prop_ro(
          "algorithm", [](const Key& self) { return self.algorithm().name; }, "The algorithm's name.")
      .def("__repr__", [](const Key& self) { return "<warpcipher.Key " + std::string(self.algorithm().name) + ">"; });
  const char* const plain_doc =
      "The text as bytes, or `out` if it is given and full; the number of bytes written if it is longer.  "
      "Returns None, and does nothing, unless data and out are bytes, bytearray or memoryview.";
  nb::class_<PlainCipher>(m, "PlainCipher", "One message of a key on bytes, bytearrays and memoryviews.")
      .def(nb::init<nb::handle_t<Key>, bool, std::string>(), nb::arg("key"), nb::arg("padded"), nb::arg("engine"),
           nb::sig("def __init__(self, key: Key, padded: bool, engine: str) -> None"),
           "ValueError: padding for an algorithm that takes none.")
      .def("encrypt", &crypt_plain<Direction::encrypt>, nb::arg("data").none(), nb::arg("out").none(),
           nb::arg("iv").none(), nb::arg("aad").none(), nb::arg("tag_length").none(),
           nb::sig("def encrypt(self, data: object, out: object, iv: object, aad: object, tag_length: int) -> "
                   "typing.Any"),
           plain_doc)
      .def("decrypt", &crypt_plain<Direction::decrypt>, nb::arg("data").none(), nb::arg("out").none(),
           nb::arg("iv").none(), nb::arg("aad").none(), nb::arg("tag_length").none(),
           nb::sig("def decrypt(self, data: object, out: object, iv: object, aad: object, tag_length: int) -> "
                   "typing.Any"),
           plain_doc);
  m.def("crypt", &crypt, nb::arg("key"), nb::arg("decrypt"), nb::arg("padded"), nb::arg("engine"), nb::arg("data"),
        nb::arg("out").none(), nb::arg("iv").none(), nb::arg("aad").none(), nb::arg("tag_length").none(),
        nb::arg("stream"),
        nb::sig("def crypt(key: Key, decrypt: bool, padded: bool, engine: str, data: object, out: object, iv: object, "
                "aad: object, tag_length: int, stream: int) -> typing.Any"),
        "One message. Without `out` the text as bytes; with it the number of bytes written there.");
  m.def(
      "output_size",
      [](const Key& key, bool decrypt, bool padded, std::size_t size, nb::handle tag_length) {
        return output_len(make_request(key, decrypt, padded, tag_length), size);
      },
      nb::arg("key"), nb::arg("decrypt"), nb::arg("padded"), nb::arg("size"), nb::arg("tag_length").none(),
      nb::sig("def output_size(key: Key, decrypt: bool, padded: bool, size: int, tag_length: int) -> int"),
      "Bytes that `crypt` needs at `out` for `size` bytes of data.");
}

namespace {

constexpr std::size_t default_tag_len = 16;

// Below this size the GIL is kept: the work is shorter than a change of hands. Measured with AES-256-GCM on a 2-core
// AMD EPYC, us a call, kept and released: 64 bytes 1.08 and 1.24 by itself, 1.6 and 3.2 next to a busy Python thread;
// 4000 bytes 2.7 and 3.0 by itself, 5.3 and 9.7 next to one.
constexpr std::size_t worth_releasing_gil = 4096;

}  // namespace

std::size_t tag_len_of(const Algorithm& algorithm, nb::handle tag_length) {
  const nb::object index = index_of(tag_length, "tag_length");
  const std::size_t tag_len = PyLong_AsSize_t(index.ptr());
  if (tag_len == static_cast<std::size_t>(-1) && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    refuse("tag_length is ", nb::str(index).c_str(), ": expected ", tag_lens_text(algorithm), " bytes");
  }
  if (algorithm.is_aead()) {
    if (!algorithm.takes_tag_len(tag_len)) {
      refuse(algorithm.name, " takes a tag of ", tag_lens_text(algorithm), " bytes, got ", tag_len);
    }
    return tag_len;
  }
  if (tag_len != default_tag_len) {
    refuse(algorithm.name, " has no tag: omit tag_length, or use an AEAD such as aes-256-gcm");
  }
  return 0;
}

Padding padding_of(const Algorithm& algorithm, bool padded) {
  if (padded && !algorithm.takes_padding()) {
    refuse(algorithm.name, " takes no padding: PKCS#7 is for ECB and CBC");
  }
  return padded ? Padding::pkcs7 : Padding::none;
}

Request make_request(const Key& key, bool decrypt, bool padded, nb::handle tag_length) {
  return {key, decrypt ? Direction::decrypt : Direction::encrypt, padding_of(key.algorithm(), padded),
          tag_len_of(key.algorithm(), tag_length)};
}

std::size_t output_len(const Request& request, std::size_t in_len) {
  if (request.direction == Direction::decrypt) {
    if (in_len < request.tag_len) {
      throw Error(Status::invalid_tag, "the data has ", in_len, " bytes, too short for a tag of ", request.tag_len);
    }
    return in_len - request.tag_len;
  }
  return warpcipher::output_len(in_len, request.padding == Padding::pkcs7, request.key.algorithm().block_len()) +
         request.tag_len;
}

Message make_message(const Request& request, const Operand& in, std::uint8_t* out, std::size_t out_len,
                     const Operand& iv, const Operand& aad) {
  const std::size_t needed = output_len(request, in.size());
  if (out_len < needed) {
    refuse("out has room for ", out_len, " bytes, ", needed, " are needed");
  }
  const bool encrypting = request.direction == Direction::encrypt;
  Message m;
  m.key = &request.key;
  m.direction = request.direction;
  m.padding = request.padding;
  m.memory = in.memory();
  m.in = in.data();
  m.in_len = encrypting ? in.size() : needed;
  m.out = out;
  m.out_len = encrypting ? needed - request.tag_len : needed;
  m.iv = iv.data();
  m.iv_len = iv.size();
  m.aad = aad.data();
  m.aad_len = aad.size();
  m.tag_len = request.tag_len;
  // Decryption only reads the tag.
  if (m.tag_len != 0) m.tag = encrypting ? out + m.out_len : in.data() + m.in_len;
  return m;
}

void check_places(const Operand& in, const Operand& out) {
  if (in.device() != out.device()) {
    refuse("data lies in ", place(in), " and out in ", place(out), ": both must lie in the same place");
  }
}

std::size_t run_one(const Message& message, std::string_view engine, Stream stream, int device) {
  Result result;
  {
    std::optional<GilReleased> released;
    if (message.in_len >= worth_releasing_gil || message.aad_len >= worth_releasing_gil || device != host_device) {
      released.emplace();
    }
    const DeviceScope scope(device);
    run(engine, {&message, 1}, {&result, 1}, stream);
  }
  if (result.status != Status::ok) throw_status(result.status, "");
  return result.written + (message.direction == Direction::encrypt ? message.tag_len : 0);
}

nb::object shortened(nb::object bytes, std::size_t written) {
  char* data = PyBytes_AsString(bytes.ptr());
  const auto size = static_cast<std::size_t>(PyBytes_Size(bytes.ptr()));
  if (written == size) return bytes;
  nb::object result = nb::bytes(data, written);
  secure_wipe(data, size);
  return result;
}

bool returns_early(const Message& message) {
  const bool waits =
      message.direction == Direction::decrypt && (message.tag_len != 0 || message.padding != Padding::none);
  return message.memory == Memory::device && !waits;
}

}  // namespace warpcipher::python
