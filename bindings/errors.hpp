// SPDX-License-Identifier: Apache-2.0
// How errors of the library become Python exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "core/error.hpp"

namespace warpcipher::python {

// Installs the translation of warpcipher::Error: ValueError, InvalidTag, EngineError or MemoryError.
void register_errors();

// Defines InvalidTag and EngineError in the module.
void bind_errors(nanobind::module_& m);

// Throws InvalidTag as the library does for a tag that does not match.
[[noreturn]] void throw_invalid_tag();

// The `Status` of Python, and throwing for one.
void bind_status(nanobind::module_& m);

// Throws the exception that a result's status stands for; `prefix` names the message, or is empty.
[[noreturn]] void throw_status(Status status, const std::string& prefix);

[[noreturn]] void throw_type_error(const std::string& text);
[[noreturn]] void throw_buffer_error(const std::string& text);

// The name of an object's type, for error texts.
std::string type_name_of(nanobind::handle object);

}  // namespace warpcipher::python
