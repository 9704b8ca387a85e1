// SPDX-License-Identifier: Apache-2.0
#include "run_one.hpp"

#include <optional>
#include <string>

#include "core/wipe.hpp"
#include "device.hpp"
#include "dispatch/run.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

constexpr std::size_t default_tag_len = 16;

// Below this size the GIL is kept: the work is shorter than a change of hands. Measured with AES-256-GCM on a 2-core
// AMD EPYC, us a call, kept and released: 64 bytes 1.08 and 1.24 by itself, 1.6 and 3.2 next to a busy Python thread;
// 4000 bytes 2.7 and 3.0 by itself, 5.3 and 9.7 next to one.
constexpr std::size_t worth_releasing_gil = 4096;

}  // namespace

std::size_t tag_len_of(const Algorithm& algorithm, nb::handle tag_length) {
  const nb::object index = nb::steal(PyNumber_Index(tag_length.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    throw_type_error("tag_length is " + type_name_of(tag_length) + ": expected an int");
  }
  const std::size_t tag_len = PyLong_AsSize_t(index.ptr());
  if (tag_len == static_cast<std::size_t>(-1) && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw Error(Status::invalid_argument, std::string("tag_length is ") + nb::str(index).c_str() + ": expected " +
                                              std::string(tag_lens_text(algorithm)) + " bytes");
  }
  if (algorithm.is_aead()) {
    if (!algorithm.takes_tag_len(tag_len)) {
      throw Error(Status::invalid_argument, std::string(algorithm.name) + " takes a tag of " +
                                                std::string(tag_lens_text(algorithm)) + " bytes, got " +
                                                std::to_string(tag_len));
    }
    return tag_len;
  }
  if (tag_len != default_tag_len) {
    throw Error(Status::invalid_argument,
                std::string(algorithm.name) + " has no tag: omit tag_length, or use an AEAD such as aes-256-gcm");
  }
  return 0;
}

Padding padding_of(const Algorithm& algorithm, bool padded) {
  if (padded && !algorithm.takes_padding()) {
    throw Error(Status::invalid_argument, std::string(algorithm.name) + " takes no padding: PKCS#7 is for ECB and CBC");
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
      throw Error(Status::invalid_tag, "the data has " + std::to_string(in_len) + " bytes, too short for a tag of " +
                                           std::to_string(request.tag_len));
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
    throw Error(Status::invalid_argument,
                "out has room for " + std::to_string(out_len) + " bytes, " + std::to_string(needed) + " are needed");
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
    throw Error(Status::invalid_argument,
                "data lies in " + place(in) + " and out in " + place(out) + ": both must lie in the same place");
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
