// SPDX-License-Identifier: Apache-2.0
// AEADs with the signatures, the bytes and the conditions of errors of pyca/cryptography's classes. Bytes-like data are
// handled here, arrays by warpcipher.arrays.
#include <string>

#include "bind.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "mode/algorithm.hpp"
#include "mode/ccm.hpp"
#include "operand.hpp"
#include "run_one.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

// The input of one class, and its words of refusal: pyca/cryptography's.
struct Kind {
  const char* class_name;
  std::string (*algorithm)(std::size_t key_bits);  // empty: no such key
  const char* wrong_key;
  std::size_t min_nonce_len, max_nonce_len;
  const char* wrong_nonce;
};

// The library itself takes any nonce of one byte or more.
constexpr Kind aes_gcm{"AESGCM",
                       [](std::size_t bits) -> std::string {
                         if (bits != 128 && bits != 192 && bits != 256) return {};
                         return "aes-" + std::to_string(bits) + "-gcm";
                       },
                       "AESGCM key must be 128, 192, or 256 bits.",
                       8,
                       128,
                       "Nonce must be between 8 and 128 bytes"};

// RFC 8452 has no keys of 192 bits; OpenSSL's are its own.
constexpr Kind aes_gcm_siv{"AESGCMSIV",
                           [](std::size_t bits) -> std::string {
                             if (bits != 128 && bits != 256) return {};
                             return "aes-" + std::to_string(bits) + "-gcm-siv";
                           },
                           "AES-GCM-SIV key must be 128 or 256 bits.",
                           gcm_siv_nonce_len,
                           gcm_siv_nonce_len,
                           "Nonce must be 12 bytes long"};

constexpr Kind aes_ccm{"AESCCM",
                       [](std::size_t bits) -> std::string {
                         if (bits != 128 && bits != 192 && bits != 256) return {};
                         return "aes-" + std::to_string(bits) + "-ccm";
                       },
                       "AESCCM key must be 128, 192, or 256 bits.",
                       Ccm::info.least_iv_len,
                       Ccm::info.most_iv_len,
                       "Nonce must be between 7 and 13 bytes"};

constexpr Kind chacha20_poly1305{"ChaCha20Poly1305",
                                 [](std::size_t bits) -> std::string { return bits == 256 ? "chacha20-poly1305" : ""; },
                                 "ChaCha20Poly1305 key must be 32 bytes.",
                                 chacha_nonce_len,
                                 chacha_nonce_len,
                                 "Nonce must be 12 bytes"};

constexpr Kind xchacha20_poly1305{
    "XChaCha20Poly1305",
    [](std::size_t bits) -> std::string { return bits == 256 ? "xchacha20-poly1305" : ""; },
    "XChaCha20Poly1305 key must be 32 bytes.",
    xchacha_nonce_len,
    xchacha_nonce_len,
    "Nonce must be 24 bytes"};

class Aead {
 public:
  Aead(const Kind& kind, nb::handle key, std::string engine, std::size_t tag_len = full_tag_len)
      : kind_(kind), engine_(std::move(engine)), tag_len_(tag_len) {
    const Operand bytes(key, "key", Operand::Use::read);
    const std::string name = kind.algorithm(8 * bytes.size());
    if (name.empty()) throw nb::value_error(kind.wrong_key);
    key_object_ = nb::type<Key>()(name, key);
    key_ = nb::inst_ptr<Key>(key_object_);
  }

  template <Direction direction>
  nb::object crypt(nb::handle nonce, nb::handle data, nb::handle aad) const {
    const Operand nonce_bytes(nonce, "nonce", Operand::Use::read);
    check_nonce(nonce_bytes);
    if (!is_plain(data)) return through_arrays(direction, nonce, data, aad, nb::none());
    const Operand in(data, "data", Operand::Use::read);
    const Operand aad_bytes(aad, "associated_data", Operand::Use::read_or_none);
    const Request request{*key_, direction, Padding::none, tag_len_};
    const std::size_t size = output_len(request, in.size());
    nb::object result = new_bytes(size);
    run_one(make_message(request, in, bytes_of(result), size, nonce_bytes, aad_bytes), engine_, nullptr, host_device);
    return result;
  }

  template <Direction direction>
  nb::object crypt_into(nb::handle nonce, nb::handle data, nb::handle aad, nb::handle buf) const {
    const Operand nonce_bytes(nonce, "nonce", Operand::Use::read);
    check_nonce(nonce_bytes);
    if (!is_plain(data) || !is_plain(buf)) return through_arrays(direction, nonce, data, aad, buf);
    require_writable(buf);
    const Operand in(data, "data", Operand::Use::read);
    const Operand out(buf, "buf", Operand::Use::write);
    const Operand aad_bytes(aad, "associated_data", Operand::Use::read_or_none);
    const Request request{*key_, direction, Padding::none, tag_len_};
    const std::size_t size = output_len(request, in.size());
    if (out.size() != size) throw nb::value_error(("buffer must be " + std::to_string(size) + " bytes").c_str());
    run_one(make_message(request, in, out.data(), size, nonce_bytes, aad_bytes), engine_, nullptr, host_device);
    return nb::int_(size);
  }

  std::string repr() const {
    return "<warpcipher.aead." + std::string(kind_.class_name) + " with a key of " + std::to_string(8 * key_->size()) +
           " bits>";
  }

 private:
  void check_nonce(const Operand& nonce) const {
    if (nonce.size() < kind_.min_nonce_len || nonce.size() > kind_.max_nonce_len) {
      throw nb::value_error(kind_.wrong_nonce);
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
      return arrays.attr("aead_crypt")(key_object_, direction == Direction::decrypt, engine_, nonce, data, aad, buf,
                                       tag_len_);
    });
  }

  const Kind& kind_;
  nb::object key_object_;
  const Key* key_;
  std::string engine_;
  std::size_t tag_len_;
};

// A separate class for Python.
template <const Kind& Which>
class AeadOf : public Aead {
 public:
  AeadOf(nb::handle key, std::string engine, std::size_t tag_len = full_tag_len)
      : Aead(Which, key, std::move(engine), tag_len) {}
};

// pyca/cryptography's constructor, and its words of refusal.
void init_ccm(AeadOf<aes_ccm>* self, nb::handle key, nb::handle tag_length, std::string engine) {
  if (!PyLong_Check(tag_length.ptr())) throw_type_error("tag_length must be an integer");
  const long len = PyLong_AsLong(tag_length.ptr());
  if (len == -1 && PyErr_Occurred() != nullptr) PyErr_Clear();
  if (len < 0 || len > 16 || (ccm_tag_lens & tag_len_bit(static_cast<std::size_t>(len))) == 0) {
    throw nb::value_error("Invalid tag_length");
  }
  new (self) AeadOf<aes_ccm>(key, std::move(engine), static_cast<std::size_t>(len));
}

nb::object random_key(long bits) {
  const nb::module_ os = nb::module_::import_("os");
  return sheltered([&] { return os.attr("urandom")(bits / 8); });
}

template <const Kind& Which>
nb::object generate_key(nb::handle bit_length) {
  const nb::object index = index_of(bit_length, "bit_length");
  int too_large = 0;  // then it returns -1, which no key has
  const long bits = PyLong_AsLongAndOverflow(index.ptr(), &too_large);
  if (bits < 0 || Which.algorithm(static_cast<std::size_t>(bits)).empty()) {
    const bool has_192 = !Which.algorithm(192).empty();
    throw nb::value_error(has_192 ? "bit_length must be 128, 192, or 256" : "bit_length must be 128 or 256");
  }
  return random_key(bits);
}

// `none()` where None is wrong: Operand then says which argument it was.
template <const Kind& Which>
nb::class_<AeadOf<Which>> bind(nb::module_& m, const std::string& description, const std::string& nonce_rule) {
  using Class = AeadOf<Which>;
  nb::class_<Class> type(
      m, Which.class_name,
      (description + " engine: \"auto\" or a name of warpcipher.engines().\n"
                     "data may be bytes-like, for bytes, or an array, for an array of its library on its device.")
          .c_str());
  if constexpr (&Which == &aes_ccm) {
    type.def("__init__", &init_ccm, nb::arg("key").none(), nb::arg("tag_length").none() = full_tag_len, nb::kw_only(),
             nb::arg("engine") = "auto",
             nb::sig("def __init__(self, key: typing_extensions.Buffer, tag_length: int = 16, *, engine: str = 'auto') "
                     "-> None"));
  } else {
    type.def(nb::init<nb::handle, std::string>(), nb::arg("key").none(), nb::kw_only(), nb::arg("engine") = "auto",
             nb::sig("def __init__(self, key: typing_extensions.Buffer, *, engine: str = 'auto') -> None"));
  }
  return type
      .def("encrypt", &Class::template crypt<Direction::encrypt>, nb::arg("nonce").none(), nb::arg("data").none(),
           nb::arg("associated_data").none(),
           nb::sig("def encrypt(self, nonce: typing_extensions.Buffer, data: typing.Any, associated_data: "
                   "typing_extensions.Buffer | None) -> typing.Any"),
           ("The ciphertext and its tag, len(data) + 16 bytes. " + nonce_rule).c_str())
      .def("decrypt", &Class::template crypt<Direction::decrypt>, nb::arg("nonce").none(), nb::arg("data").none(),
           nb::arg("associated_data").none(),
           nb::sig("def decrypt(self, nonce: typing_extensions.Buffer, data: typing.Any, associated_data: "
                   "typing_extensions.Buffer | None) -> typing.Any"),
           "The text. InvalidTag: the tag does not match, or data is shorter than a tag.")
      .def("encrypt_into", &Class::template crypt_into<Direction::encrypt>, nb::arg("nonce").none(),
           nb::arg("data").none(), nb::arg("associated_data").none(), nb::arg("buf"),
           nb::sig("def encrypt_into(self, nonce: typing_extensions.Buffer, data: typing.Any, associated_data: "
                   "typing_extensions.Buffer | None, buf: "
                   "typing.Any) -> int"),
           "As encrypt, into `buf` of exactly len(data) + 16 bytes; returns that number.")
      .def("decrypt_into", &Class::template crypt_into<Direction::decrypt>, nb::arg("nonce").none(),
           nb::arg("data").none(), nb::arg("associated_data").none(), nb::arg("buf"),
           nb::sig("def decrypt_into(self, nonce: typing_extensions.Buffer, data: typing.Any, associated_data: "
                   "typing_extensions.Buffer | None, buf: "
                   "typing.Any) -> int"),
           "As decrypt, into `buf` of exactly len(data) - 16 bytes; returns that number. InvalidTag: buf holds zeros.")
      .def("__repr__", &Class::repr);
}

// nanobind shares types among copies of this extension. The first copy's methods may have been replaced (signed.cpp),
// and nanobind adds no overload to a method that is not its own.
template <const Kind& Which>
bool is_bound(nb::module_& m) {
  const nb::handle known = nb::type<AeadOf<Which>>();
  if (known.is_valid()) m.attr(Which.class_name) = known;
  return known.is_valid();
}

template <const Kind& Which>
void bind_aes(nb::module_& m, const std::string& description, const std::string& nonce_rule, const char* key_rule) {
  if (is_bound<Which>(m)) return;
  bind<Which>(m, description, nonce_rule)
      .def_static("generate_key", &generate_key<Which>, nb::arg("bit_length").none(),
                  nb::sig("def generate_key(bit_length: int) -> bytes"), key_rule);
}

template <const Kind& Which>
void bind_chacha(nb::module_& m, const std::string& description, const std::string& nonce_rule) {
  if (is_bound<Which>(m)) return;
  bind<Which>(m, description, nonce_rule)
      .def_static(
          "generate_key", [] { return random_key(256); }, nb::sig("def generate_key() -> bytes"),
          "A random key of 32 bytes, from the operating system.");
}

}  // namespace

void bind_aead(nb::module_& m) {
  const std::string interface = " with the interface of cryptography.hazmat.primitives.ciphers.aead.";
  const std::string form = ": ciphertexts are ciphertext || 16-byte tag.\n\n";
  bind_aes<aes_gcm>(m, "AES-GCM (SP 800-38D)" + interface + "AESGCM" + form + "key: 16, 24 or 32 bytes.",
                    "The nonce, 8 to 128 bytes, 12 by custom, must never be used twice with one key.",
                    "A random key of 128, 192 or 256 bits, from the operating system.");
  bind_aes<aes_ccm>(m,
                    "AES-CCM (SP 800-38C)" + interface + "AESCCM" + ": ciphertexts are ciphertext || tag.\n\n" +
                        "key: 16, 24 or 32 bytes. tag_length: 4, 6, 8, 10, 12, 14 or 16.",
                    "The nonce, 7 to 13 bytes, must never be used twice with one key. A text has fewer than "
                    "2^(8 (15 - len(nonce))) bytes: 16 MiB with 12.",
                    "A random key of 128, 192 or 256 bits, from the operating system.");
  bind_aes<aes_gcm_siv>(m, "AES-GCM-SIV (RFC 8452)" + interface + "AESGCMSIV" + form + "key: 16 or 32 bytes.",
                        "The nonce has 12 bytes. One that is used twice with one key reveals only whether nonce, text "
                        "and associated data were the same.",
                        "A random key of 128 or 256 bits, from the operating system.");
  bind_chacha<chacha20_poly1305>(
      m, "ChaCha20-Poly1305 (RFC 8439)" + interface + "ChaCha20Poly1305" + form + "key: 32 bytes.",
      "The nonce, 12 bytes, must never be used twice with one key.");
  bind_chacha<xchacha20_poly1305>(
      m, "XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha)" + interface + "ChaCha20Poly1305" + form + "key: 32 bytes.",
      "The nonce, 24 bytes, must never be used twice with one key; random ones do not repeat.");
}

}  // namespace warpcipher::python
