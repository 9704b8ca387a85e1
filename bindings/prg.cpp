// SPDX-License-Identifier: Apache-2.0
// Generators and point functions for private computation, for warpcipher.prg.
#include "prg/prg.hpp"

#include <string_view>

#include "bind.hpp"
#include "core/error.hpp"
#include "gil.hpp"
#include "operand.hpp"

namespace nb = nanobind;

namespace warpcipher::python {
namespace {

using namespace prg;

std::span<std::uint8_t> bytes_of(const Operand& operand) { return {operand.data(), operand.size()}; }

// Calls run(place) without the GIL, the device of `out` current. in: read by the call, where `out` lies.
template <class Run>
void run_on(nb::handle in, const Operand* input, nb::handle out, const Operand& output, std::string_view engine,
            std::uintptr_t cuda_stream, const Run& run) {
  if (input != nullptr && input->device() != output.device()) {
    throw nb::value_error(("the input lies in " + place(*input) + " and out in " + place(output)).c_str());
  }
  const auto stream = reinterpret_cast<Stream>(cuda_stream);
  {
    const GilReleased released;
    const DeviceScope scope(output.device());
    run(Place{output.memory(), stream, engine});
  }
  if (output.device() != host_device) {
    keep_until_done({nb::borrow(in), nb::borrow(out)}, output.device(), stream);
  }
}

void expand_seeds(nb::handle seeds, nb::handle out, std::string_view generator, int children, std::string_view engine,
                  std::uintptr_t cuda_stream) {
  const Generator found = find_generator(generator);
  const Operand input(seeds, "seeds", Operand::Use::read), output(out, "out", Operand::Use::write);
  run_on(seeds, &input, out, output, engine, cuda_stream,
         [&](const Place& place) { expand(found, input.bytes(), children, bytes_of(output), place); });
}

void grow_tree(nb::handle roots, nb::handle out, std::string_view generator, int depth, std::string_view engine,
               std::uintptr_t cuda_stream) {
  const Generator found = find_generator(generator);
  const Operand input(roots, "roots", Operand::Use::read), output(out, "out", Operand::Use::write);
  run_on(roots, &input, out, output, engine, cuda_stream,
         [&](const Place& place) { tree(found, input.bytes(), depth, bytes_of(output), place); });
}

// Keys as Python holds them: (generator, group, bits, party, records).
class HeldKeys {
 public:
  explicit HeldKeys(const nb::tuple& keys)
      : records_(keys[4], "keys", Operand::Use::read),
        keys_{{find_generator(nb::cast<std::string_view>(keys[0])), find_group(nb::cast<std::string_view>(keys[1])),
               nb::cast<int>(keys[2])},
              nb::cast<int>(keys[3]),
              records_.bytes()} {}

  const PointKeys& operator*() const { return keys_; }

 private:
  Operand records_;
  PointKeys keys_;
};

nb::tuple generate_keys(std::string_view generator, std::string_view group, int bits, nb::handle points,
                        nb::handle values, nb::handle random) {
  const Domain domain{find_generator(generator), find_group(group), bits};
  const Integers at(points, "points"), given(values, "values");
  const Operand seeds(random, "random", Operand::Use::read);
  if (bits < 0 || bits > most_bits) throw nb::value_error("bits is out of range: expected 0 to 63");
  const std::size_t size = domain.record_len() * at.values().size();
  const nb::object made[2] = {new_bytearray(size), new_bytearray(size)};
  const Operand first(made[0], "keys", Operand::Use::write), second(made[1], "keys", Operand::Use::write);
  {
    const GilReleased released;
    generate(domain, at.values(), given.values(), seeds.bytes(), bytes_of(first), bytes_of(second));
  }
  return nb::make_tuple(made[0], made[1]);
}

void evaluate_keys(const nb::tuple& keys, nb::handle at, bool same, nb::handle out, std::string_view engine,
                   std::uintptr_t cuda_stream) {
  const HeldKeys held(keys);
  const Integers points(at, "at");
  const Operand output(out, "out", Operand::Use::write);
  run_on(out, nullptr, out, output, engine, cuda_stream,
         [&](const Place& place) { evaluate(*held, points.values(), same, bytes_of(output), place); });
}

void evaluate_all_keys(const nb::tuple& keys, nb::handle out, std::string_view engine, std::uintptr_t cuda_stream) {
  const HeldKeys held(keys);
  const Operand output(out, "out", Operand::Use::write);
  run_on(out, nullptr, out, output, engine, cuda_stream,
         [&](const Place& place) { evaluate_all(*held, bytes_of(output), place); });
}

void answer_keys(const nb::tuple& keys, nb::handle table, std::size_t record_size, nb::handle out,
                 std::string_view engine, std::uintptr_t cuda_stream) {
  const HeldKeys held(keys);
  const Operand input(table, "table", Operand::Use::read), output(out, "out", Operand::Use::write);
  run_on(table, &input, out, output, engine, cuda_stream,
         [&](const Place& place) { answer(*held, input.bytes(), record_size, bytes_of(output), place); });
}

}  // namespace

void bind_prg(nb::module_& m) {
  m.def("prg_expand", &expand_seeds, nb::arg("seeds"), nb::arg("out"), nb::arg("prg"), nb::arg("children"),
        nb::arg("engine"), nb::arg("cuda_stream"),
        nb::sig("def prg_expand(seeds: object, out: object, prg: str, children: int, engine: str, cuda_stream: int) -> "
                "None"),
        "Writes the children of each seed.");
  m.def("prg_tree", &grow_tree, nb::arg("roots"), nb::arg("out"), nb::arg("prg"), nb::arg("depth"), nb::arg("engine"),
        nb::arg("cuda_stream"),
        nb::sig("def prg_tree(roots: object, out: object, prg: str, depth: int, engine: str, cuda_stream: int) -> "
                "None"),
        "Writes the leaves of the tree of each root.");
  m.def("dpf_generate", &generate_keys, nb::arg("prg"), nb::arg("group"), nb::arg("bits"), nb::arg("points"),
        nb::arg("values"), nb::arg("random"),
        nb::sig("def dpf_generate(prg: str, group: str, bits: int, points: object, values: object, random: "
                "typing_extensions.Buffer) -> tuple[bytearray, bytearray]"),
        "The records of both parties. random: 32 bytes for each point.");
  m.def(
      "dpf_check", [](const nb::tuple& keys) { check_keys(*HeldKeys(keys)); }, nb::arg("keys"),
      nb::sig("def dpf_check(keys: tuple[str, str, int, int, bytearray]) -> None"),
      "Refuses records that cannot be of such keys.");
  m.def(
      "dpf_record_size",
      [](std::string_view generator, std::string_view group, int bits) {
        return Domain{find_generator(generator), find_group(group), bits}.record_len();
      },
      nb::arg("prg"), nb::arg("group"), nb::arg("bits"),
      nb::sig("def dpf_record_size(prg: str, group: str, bits: int) -> int"), "Bytes of a key.");
  m.def("dpf_evaluate", &evaluate_keys, nb::arg("keys"), nb::arg("at"), nb::arg("same"), nb::arg("out"),
        nb::arg("engine"), nb::arg("cuda_stream"),
        nb::sig("def dpf_evaluate(keys: tuple[str, str, int, int, bytearray], at: object, same: bool, out: object, "
                "engine: str, cuda_stream: int) -> None"),
        "Writes the share of each key at its points, or (same) of each key at all of them.");
  m.def("dpf_evaluate_all", &evaluate_all_keys, nb::arg("keys"), nb::arg("out"), nb::arg("engine"),
        nb::arg("cuda_stream"),
        nb::sig("def dpf_evaluate_all(keys: tuple[str, str, int, int, bytearray], out: object, engine: str, "
                "cuda_stream: int) -> None"),
        "Writes the shares of each key at all points.");
  m.def("dpf_answer", &answer_keys, nb::arg("keys"), nb::arg("table"), nb::arg("record_size"), nb::arg("out"),
        nb::arg("engine"), nb::arg("cuda_stream"),
        nb::sig("def dpf_answer(keys: tuple[str, str, int, int, bytearray], table: object, record_size: int, out: "
                "object, engine: str, cuda_stream: int) -> None"),
        "Writes the sum of a table's records, each times its share, for each key.");
}

}  // namespace warpcipher::python
