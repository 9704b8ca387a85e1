// SPDX-License-Identifier: Apache-2.0
// The parts that module.cpp puts together: one function for each file of bindings.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

namespace warpcipher::python {

void bind_aead(nanobind::module_& m);
void bind_cipher(nanobind::module_& m);
void bind_columns(nanobind::module_& m);
void bind_device(nanobind::module_& m);
void bind_exchange(nanobind::module_& m);
void bind_file(nanobind::module_& m);
void bind_kv(nanobind::module_& m);
void bind_sealing(nanobind::module_& m);
void bind_lists(nanobind::module_& m);
void bind_messages(nanobind::module_& m);
void bind_parquet(nanobind::module_& m);
void bind_pinned(nanobind::module_& m);
void bind_prg(nanobind::module_& m);
void bind_queue(nanobind::module_& m);
void bind_random(nanobind::module_& m);
void bind_random_bits(nanobind::module_& m);
void bind_search(nanobind::module_& m);
void bind_signed(nanobind::module_& m);
void bind_span(nanobind::module_& m);
void bind_thrift(nanobind::module_& m);
void bind_tuning(nanobind::module_& m);

}  // namespace warpcipher::python
