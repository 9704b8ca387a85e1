// SPDX-License-Identifier: Apache-2.0
// AES-GCM with the signatures, the bytes and the conditions of errors of pyca/cryptography's class. Bytes-like data are
// handled here, arrays by warpcipher.arrays.
#include <string>

#include "bind.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "mode/algorithm.hpp"
#include "run_one.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

constexpr std::size_t tag_len = 16;
// pyca/cryptography's bounds. The library itself takes any nonce of one byte or more.
constexpr std::size_t min_nonce_len = 8;
constexpr std::size_t max_nonce_len = 128;

class AesGcm {
 public:
  AesGcm(nb::handle key, std::string engine) : engine_(std::move(engine)) {
    const Operand bytes(key, "key", Operand::Use::read);
    if (bytes.size() != 16 && bytes.size() != 24 && bytes.size() != 32) {
      throw nb::value_error("AESGCM key must be 128, 192, or 256 bits.");
    }
    const std::string name = "aes-" + std::to_string(8 * bytes.size()) + "-gcm";
    key_object_ = nb::type<Key>()(name, key);
    key_ = nb::inst_ptr<Key>(key_object_);
  }

  nb::object crypt(Direction direction, nb::handle nonce, nb::handle data, nb::handle aad) const {
    const Operand nonce_bytes(nonce, "nonce", Operand::Use::read);
    check_nonce(nonce_bytes);
    if (!is_plain(data)) return through_arrays(direction, nonce, data, aad, nb::none());
    const Operand in(data, "data", Operand::Use::read);
    const Operand aad_bytes(aad, "associated_data", Operand::Use::read_or_none);
    const Request request{*key_, direction, Padding::none, tag_len};
    const std::size_t size = output_len(request, in.size());
    nb::object result = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
    if (!result.is_valid()) throw nb::python_error();
    auto* out = reinterpret_cast<std::uint8_t*>(PyBytes_AsString(result.ptr()));
    run_one(make_message(request, in, out, size, nonce_bytes, aad_bytes), engine_, nullptr, host_device);
    return result;
  }

  nb::object crypt_into(Direction direction, nb::handle nonce, nb::handle data, nb::handle aad, nb::handle buf) const {
    const Operand nonce_bytes(nonce, "nonce", Operand::Use::read);
    check_nonce(nonce_bytes);
    if (!is_plain(data) || !is_plain(buf)) return through_arrays(direction, nonce, data, aad, buf);
    require_writable(buf);
    const Operand in(data, "data", Operand::Use::read);
    const Operand out(buf, "buf", Operand::Use::write);
    const Operand aad_bytes(aad, "associated_data", Operand::Use::read_or_none);
    const Request request{*key_, direction, Padding::none, tag_len};
    const std::size_t size = output_len(request, in.size());
    if (out.size() != size) throw nb::value_error(("buffer must be " + std::to_string(size) + " bytes").c_str());
    run_one(make_message(request, in, out.data(), size, nonce_bytes, aad_bytes), engine_, nullptr, host_device);
    return nb::int_(size);
  }

  std::string repr() const {
    return "<warpcipher.aead.AESGCM with a key of " + std::to_string(8 * key_->size()) + " bits>";
  }

 private:
  static void check_nonce(const Operand& nonce) {
    if (nonce.size() < min_nonce_len || nonce.size() > max_nonce_len) {
      throw nb::value_error("Nonce must be between 8 and 128 bytes");
    }
  }

  // pyca/cryptography raises TypeError here, where the rest of this package raises BufferError.
  static void require_writable(nb::handle buf) {
    if (PyByteArray_CheckExact(buf.ptr())) return;
    Py_buffer view;
    if (PyObject_GetBuffer(buf.ptr(), &view, PyBUF_FULL_RO) != 0) throw nb::python_error();
    const bool readonly = view.readonly != 0;
    PyBuffer_Release(&view);
    if (readonly) throw_type_error("Buffer is not writable.");
  }

  nb::object through_arrays(Direction direction, nb::handle nonce, nb::handle data, nb::handle aad,
                            nb::handle buf) const {
    const nb::module_ later = nb::module_::import_("warpcipher._later");  // imported with the package
    return sheltered([&] {
      const nb::object arrays = later.attr("load")("arrays");
      return arrays.attr("aead_crypt")(key_object_, direction == Direction::decrypt, engine_, nonce, data, aad, buf);
    });
  }

  nb::object key_object_;
  const Key* key_;
  std::string engine_;
};

nb::object generate_key(nb::handle bit_length) {
  const nb::object index = nb::steal(PyNumber_Index(bit_length.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    throw_type_error("bit_length is " + type_name_of(bit_length) + ": expected an int");
  }
  int too_large = 0;  // then it returns -1, which no key has
  const long bits = PyLong_AsLongAndOverflow(index.ptr(), &too_large);
  if (bits != 128 && bits != 192 && bits != 256) throw nb::value_error("bit_length must be 128, 192, or 256");
  const nb::module_ os = nb::module_::import_("os");
  return sheltered([&] { return os.attr("urandom")(bits / 8); });
}

}  // namespace

// `none()` where None is wrong: Operand then says which argument it was.
void bind_aead(nb::module_& m) {
  nb::class_<AesGcm>(
      m, "AESGCM",
      "AES-GCM (SP 800-38D) with the interface of cryptography.hazmat.primitives.ciphers.aead.AESGCM: ciphertexts are "
      "ciphertext || 16-byte tag.\n\n"
      "key: 16, 24 or 32 bytes. engine: \"auto\" or a name of warpcipher.engines().\n"
      "data may be bytes-like, for bytes, or an array, for an array of its library on its device.")
      .def(nb::init<nb::handle, std::string>(), nb::arg("key").none(), nb::kw_only(), nb::arg("engine") = "auto",
           nb::sig("def __init__(self, key: typing_extensions.Buffer, *, engine: str = 'auto') -> None"))
      .def_static("generate_key", &generate_key, nb::arg("bit_length").none(),
                  nb::sig("def generate_key(bit_length: int) -> bytes"),
                  "A random key of 128, 192 or 256 bits, from the operating system.")
      .def(
          "encrypt",
          [](const AesGcm& self, nb::handle nonce, nb::handle data, nb::handle aad) {
            return self.crypt(Direction::encrypt, nonce, data, aad);
          },
          nb::arg("nonce").none(), nb::arg("data").none(), nb::arg("associated_data").none(),
          nb::sig("def encrypt(self, nonce: typing_extensions.Buffer, data: typing.Any, associated_data: "
                  "typing_extensions.Buffer | None) -> typing.Any"),
          "The ciphertext and its tag, len(data) + 16 bytes. The nonce, 8 to 128 bytes, 12 by custom, must never be "
          "used twice with one key.")
      .def(
          "decrypt",
          [](const AesGcm& self, nb::handle nonce, nb::handle data, nb::handle aad) {
            return self.crypt(Direction::decrypt, nonce, data, aad);
          },
          nb::arg("nonce").none(), nb::arg("data").none(), nb::arg("associated_data").none(),
          nb::sig("def decrypt(self, nonce: typing_extensions.Buffer, data: typing.Any, associated_data: "
                  "typing_extensions.Buffer | None) -> typing.Any"),
          "The text. InvalidTag: the tag does not match, or data is shorter than a tag.")
      .def(
          "encrypt_into",
          [](const AesGcm& self, nb::handle nonce, nb::handle data, nb::handle aad, nb::handle buf) {
            return self.crypt_into(Direction::encrypt, nonce, data, aad, buf);
          },
          nb::arg("nonce").none(), nb::arg("data").none(), nb::arg("associated_data").none(), nb::arg("buf"),
          nb::sig("def encrypt_into(self, nonce: typing_extensions.Buffer, data: typing.Any, associated_data: "
                  "typing_extensions.Buffer | None, buf: "
                  "typing.Any) -> int"),
          "As encrypt, into `buf` of exactly len(data) + 16 bytes; returns that number.")
      .def(
          "decrypt_into",
          [](const AesGcm& self, nb::handle nonce, nb::handle data, nb::handle aad, nb::handle buf) {
            return self.crypt_into(Direction::decrypt, nonce, data, aad, buf);
          },
          nb::arg("nonce").none(), nb::arg("data").none(), nb::arg("associated_data").none(), nb::arg("buf"),
          nb::sig("def decrypt_into(self, nonce: typing_extensions.Buffer, data: typing.Any, associated_data: "
                  "typing_extensions.Buffer | None, buf: "
                  "typing.Any) -> int"),
          "As decrypt, into `buf` of exactly len(data) - 16 bytes; returns that number. InvalidTag: buf holds zeros.")
      .def("__repr__", &AesGcm::repr);
}

}  // namespace warpcipher::python
