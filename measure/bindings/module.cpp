// SPDX-License-Identifier: Apache-2.0
// warpcipher_measure._native: the papers' variants, and what timing needs of a GPU. Nothing of the library is in it.
// Memory comes and goes as addresses: the package sees to it that they are right.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "errors.hpp"
#include "gil.hpp"
#include "lab.hpp"
#include "once.hpp"

namespace nb = nanobind;

namespace warpcipher::python {

void bind_timing(nb::module_& m);

namespace {

std::span<const std::uint8_t> bytes_of(const nb::bytes& object) {
  return {static_cast<const std::uint8_t*>(object.data()), object.size()};
}

class Job {
 public:
  Job(std::string_view paper, std::string_view variant, const nb::bytes& key, const nb::bytes& iv,
      std::map<std::string, std::int64_t> parameters, int device) {
    lab::Parameters taken(std::move(parameters));
    job_ = lab::make_job(paper, variant, {bytes_of(key), bytes_of(iv), taken, device});
  }

  void run(std::uintptr_t source, std::size_t source_size, std::uintptr_t target, std::size_t target_size,
           std::uintptr_t stream) {
    const GilReleased released;
    job_->run({reinterpret_cast<const std::uint8_t*>(source), source_size, reinterpret_cast<std::uint8_t*>(target),
               target_size},
              reinterpret_cast<Stream>(stream));
  }

  lab::Facts facts() const { return job_->facts(); }

 private:
  std::unique_ptr<lab::Job> job_;
};

nb::dict as_dict(const lab::Variant& variant) {
  nb::dict entry;
  entry["name"] = variant.name;
  entry["description"] = variant.description;
  entry["needs_gpu"] = variant.needs_gpu;
  entry["constant_time"] = variant.constant_time;
  entry["absent"] = variant.make ? std::string_view() : variant.absent;
  return entry;
}

}  // namespace
}  // namespace warpcipher::python

WARPCIPHER_MODULE(_native, m) {
  using namespace warpcipher;
  using warpcipher::python::Job;
  m.doc() = "The native part of warpcipher_measure. Not a public interface.";
  python::register_errors();
  python::bind_timing(m);
  nb::class_<Job>(m, "Job", "A variant made ready for one key.")
      .def(nb::init<std::string_view, std::string_view, const nb::bytes&, const nb::bytes&,
                    std::map<std::string, std::int64_t>, int>(),
           nb::arg("paper"), nb::arg("variant"), nb::arg("key"), nb::arg("iv"), nb::arg("parameters"),
           nb::arg("device"))
      .def("run", &Job::run, nb::arg("source"), nb::arg("source_size"), nb::arg("target"), nb::arg("target_size"),
           nb::arg("stream"), "Enqueues on a GPU; returns when done on a CPU.")
      .def("facts", &Job::facts, "What the runtime says about the kernel.");
  m.def(
      "variants",
      [](std::string_view paper) {
        nb::list list;
        for (const lab::Variant& variant : lab::find_paper(paper).variants) list.append(python::as_dict(variant));
        return list;
      },
      nb::arg("paper"), nb::sig("def variants(paper: str) -> list[dict[str, typing.Any]]"));
  m.def("papers", [] {
    std::vector<std::string> names;
    for (const lab::Paper& paper : lab::papers()) names.emplace_back(paper.name);
    return names;
  });
}
