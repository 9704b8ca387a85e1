// SPDX-License-Identifier: Apache-2.0
// The S-boxes of AES and DES as straight-line three-input logic, for any word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "cipher/lut3.hpp"

namespace warpcipher::circuits {

// Found for this project by local search from the 113 gates of Boyar, Peralta and Calik and from 121 of the inverse;
// ptxas by itself makes 87 of the former. Written out: of data, the hybrid kernels' registers come out otherwise.

// The S-box of FIPS 197: 65 gates. In place. bits[i] holds bit i of each byte, bit 0 the least significant.
template <class Word>
WARPCIPHER_INLINE constexpr void aes_sbox(Word (&bits)[8]) {
  const Word x0 = bits[7];
  const Word x1 = bits[6];
  const Word x2 = bits[5];
  const Word x3 = bits[4];
  const Word x4 = bits[3];
  const Word x5 = bits[2];
  const Word x6 = bits[1];
  const Word x7 = bits[0];
  const Word x8 = lut3<0x5a>(x6, x1, x0);
  const Word x9 = lut3<0x3c>(x5, x0, x0);
  const Word x10 = lut3<0x96>(x6, x9, x3);
  const Word x11 = lut3<0x66>(x1, x8, x10);
  const Word x12 = lut3<0x96>(x11, x0, x2);
  const Word x13 = lut3<0x96>(x8, x3, x4);
  const Word x14 = lut3<0x96>(x2, x1, x13);
  const Word x15 = lut3<0x96>(x7, x14, x12);
  const Word x16 = lut3<0x14>(x15, x7, x11);
  const Word x17 = lut3<0x36>(x12, x16, x9);
  const Word x18 = lut3<0x78>(x17, x10, x13);
  const Word x19 = lut3<0x78>(x18, x14, x9);
  const Word x20 = lut3<0xe1>(x19, x12, x11);
  const Word x21 = lut3<0x96>(x7, x20, x13);
  const Word x22 = lut3<0x66>(x7, x12, x13);
  const Word x23 = lut3<0x96>(x15, x22, x3);
  const Word x24 = lut3<0x66>(x2, x10, x23);
  const Word x25 = lut3<0x1d>(x21, x24, x20);
  const Word x26 = lut3<0x66>(x25, x9, x24);
  const Word x27 = lut3<0x78>(x18, x7, x23);
  const Word x28 = lut3<0x6a>(x22, x8, x17);
  const Word x29 = lut3<0x96>(x9, x14, x28);
  const Word x30 = lut3<0x66>(x6, x26, x8);
  const Word x31 = lut3<0x36>(x15, x29, x30);
  const Word x32 = lut3<0x9c>(x27, x25, x31);
  const Word x33 = lut3<0x96>(x3, x18, x7);
  const Word x34 = lut3<0x96>(x20, x28, x33);
  const Word x35 = lut3<0x93>(x6, x34, x26);
  const Word x36 = lut3<0x6a>(x35, x25, x27);
  const Word x37 = lut3<0x5a>(x31, x25, x36);
  const Word x38 = lut3<0x94>(x32, x27, x37);
  const Word x39 = lut3<0xd8>(x31, x35, x36);
  const Word x40 = lut3<0x28>(x7, x13, x39);
  const Word x41 = lut3<0xc6>(x32, x31, x35);
  const Word x42 = lut3<0x6c>(x13, x40, x41);
  const Word x43 = lut3<0xe8>(x37, x27, x25);
  const Word x44 = lut3<0x66>(x41, x43, x38);
  const Word x45 = lut3<0x6c>(x8, x42, x44);
  const Word x46 = lut3<0x60>(x43, x6, x26);
  const Word x47 = lut3<0x78>(x46, x22, x38);
  const Word x48 = lut3<0x5a>(x39, x31, x41);
  const Word x49 = lut3<0x3c>(x44, x48, x48);
  const Word x50 = lut3<0x6a>(x44, x15, x46);
  const Word x51 = lut3<0x6a>(x12, x49, x50);
  const Word x52 = lut3<0x5a>(x41, x0, x38);
  const Word x53 = lut3<0x5a>(x49, x51, x52);
  const Word x54 = lut3<0x28>(x11, x9, x53);
  const Word x55 = lut3<0x6c>(x49, x54, x11);
  const Word x56 = lut3<0x96>(x45, x47, x55);
  const Word x57 = lut3<0x95>(x26, x38, x56);
  const Word x58 = lut3<0x6c>(x52, x51, x14);
  const Word x59 = lut3<0x96>(x58, x57, x42);
  const Word x60 = lut3<0x6a>(x24, x41, x55);
  const Word x61 = lut3<0x96>(x58, x60, x45);
  const Word x62 = lut3<0x6c>(x43, x61, x30);
  const Word x63 = lut3<0x78>(x62, x23, x39);
  const Word x64 = lut3<0x28>(x14, x12, x53);
  const Word x65 = lut3<0x96>(x60, x64, x51);
  const Word x66 = lut3<0x6a>(x10, x48, x65);
  const Word x67 = lut3<0x96>(x66, x40, x50);
  const Word x68 = lut3<0x87>(x67, x48, x7);
  const Word x69 = lut3<0x69>(x68, x65, x60);
  const Word x70 = lut3<0x96>(x69, x42, x47);
  const Word x71 = lut3<0x96>(x62, x65, x54);
  const Word x72 = lut3<0x93>(x52, x71, x9);
  bits[7] = x66;
  bits[6] = x68;
  bits[5] = x72;
  bits[4] = x69;
  bits[3] = x70;
  bits[2] = x63;
  bits[1] = x59;
  bits[0] = x57;
}

// Its inverse: 65 gates. In place. bits[i] holds bit i of each byte, bit 0 the least significant.
template <class Word>
WARPCIPHER_INLINE constexpr void aes_inverse_sbox(Word (&bits)[8]) {
  const Word x0 = bits[7];
  const Word x1 = bits[6];
  const Word x2 = bits[5];
  const Word x3 = bits[4];
  const Word x4 = bits[3];
  const Word x5 = bits[2];
  const Word x6 = bits[1];
  const Word x7 = bits[0];
  const Word x8 = lut3<0x99>(x6, x4, x3);
  const Word x9 = lut3<0x96>(x0, x1, x8);
  const Word x10 = lut3<0x96>(x9, x4, x0);
  const Word x11 = lut3<0x69>(x10, x7, x6);
  const Word x12 = lut3<0x99>(x10, x2, x11);
  const Word x13 = lut3<0x5a>(x1, x12, x0);
  const Word x14 = lut3<0x5a>(x7, x0, x8);
  const Word x15 = lut3<0x96>(x9, x14, x6);
  const Word x16 = lut3<0x69>(x3, x15, x5);
  const Word x17 = lut3<0x0c>(x8, x16, x16);
  const Word x18 = lut3<0x96>(x7, x13, x4);
  const Word x19 = lut3<0xd2>(x17, x13, x18);
  const Word x20 = lut3<0x5a>(x13, x19, x10);
  const Word x21 = lut3<0xa5>(x12, x20, x16);
  const Word x22 = lut3<0x96>(x5, x8, x6);
  const Word x23 = lut3<0xe1>(x19, x6, x14);
  const Word x24 = lut3<0x63>(x12, x23, x10);
  const Word x25 = lut3<0xa5>(x12, x24, x14);
  const Word x26 = lut3<0x66>(x8, x22, x25);
  const Word x27 = lut3<0xc6>(x15, x7, x26);
  const Word x28 = lut3<0x96>(x19, x27, x4);
  const Word x29 = lut3<0x59>(x11, x21, x28);
  const Word x30 = lut3<0x6a>(x9, x22, x17);
  const Word x31 = lut3<0x96>(x27, x30, x22);
  const Word x32 = lut3<0x2d>(x31, x1, x20);
  const Word x33 = lut3<0xe1>(x29, x32, x24);
  const Word x34 = lut3<0x5a>(x8, x30, x11);
  const Word x35 = lut3<0x96>(x30, x23, x14);
  const Word x36 = lut3<0x9a>(x34, x25, x35);
  const Word x37 = lut3<0x4e>(x33, x24, x36);
  const Word x38 = lut3<0x5a>(x32, x37, x36);
  const Word x39 = lut3<0x9c>(x29, x38, x24);
  const Word x40 = lut3<0xe8>(x24, x39, x36);
  const Word x41 = lut3<0x5a>(x37, x2, x40);
  const Word x42 = lut3<0xca>(x32, x39, x29);
  const Word x43 = lut3<0xd2>(x32, x33, x42);
  const Word x44 = lut3<0x66>(x5, x42, x43);
  const Word x45 = lut3<0x66>(x44, x42, x40);
  const Word x46 = lut3<0x66>(x42, x43, x37);
  const Word x47 = lut3<0x06>(x8, x45, x46);
  const Word x48 = lut3<0x28>(x10, x34, x43);
  const Word x49 = lut3<0x6a>(x42, x34, x48);
  const Word x50 = lut3<0xa6>(x13, x46, x49);
  const Word x51 = lut3<0x6c>(x45, x50, x9);
  const Word x52 = lut3<0x6c>(x45, x51, x18);
  const Word x53 = lut3<0x6a>(x16, x46, x52);
  const Word x54 = lut3<0x6a>(x25, x44, x53);
  const Word x55 = lut3<0x9c>(x43, x54, x12);
  const Word x56 = lut3<0xa6>(x20, x40, x55);
  const Word x57 = lut3<0x78>(x53, x41, x26);
  const Word x58 = lut3<0x6c>(x21, x57, x37);
  const Word x59 = lut3<0x3c>(x56, x58, x58);
  const Word x60 = lut3<0x6a>(x42, x14, x54);
  const Word x61 = lut3<0x96>(x60, x56, x57);
  const Word x62 = lut3<0xc6>(x1, x61, x40);
  const Word x63 = lut3<0x96>(x59, x48, x62);
  const Word x64 = lut3<0x6c>(x10, x63, x44);
  const Word x65 = lut3<0x96>(x47, x50, x64);
  const Word x66 = lut3<0x9a>(x41, x15, x65);
  const Word x67 = lut3<0xa6>(x11, x37, x64);
  const Word x68 = lut3<0x96>(x66, x51, x67);
  const Word x69 = lut3<0x6a>(x16, x45, x60);
  const Word x70 = lut3<0x6c>(x46, x69, x22);
  const Word x71 = lut3<0x96>(x49, x70, x67);
  const Word x72 = lut3<0x96>(x71, x59, x65);
  bits[7] = x55;
  bits[6] = x66;
  bits[5] = x67;
  bits[4] = x58;
  bits[3] = x72;
  bits[2] = x62;
  bits[1] = x70;
  bits[0] = x68;
}

// lut3<table> of three nodes. One with fewer inputs repeats the last.
struct Gate {
  std::uint8_t a, b, c, table;
};

// Circuits that are data have their inputs as nodes 0, 1, ...; the nodes that follow are gates. `outputs` are nodes.

// The S-boxes of FIPS 46-3, numbered 1 to 8; the first of the six bits as E orders them is the most significant. S1 to
// S3 and S6 to S8 by DeepLearningJohnDoe (2015), S4 by Roman Rusakov, from John the Ripper's sboxes-t.c, whose notice
// says that the formulas are not copyrighted; S5 was found from theirs by exchanging gates at random.
template <int Number>
struct DesSbox;

template <>
struct DesSbox<1> {
  static constexpr Gate gates[] = {
      {0, 3, 5, 0xc1},    {2, 5, 6, 0x9e},    {0, 2, 5, 0xd6},   {3, 6, 8, 0x56},    {1, 7, 9, 0x6c},
      {5, 6, 8, 0x7b},    {1, 9, 11, 0xd6},   {4, 10, 12, 0x6a}, {0, 1, 3, 0x7a},    {1, 5, 9, 0xc9},
      {10, 14, 15, 0x72}, {2, 5, 14, 0x29},   {1, 10, 17, 0x95}, {4, 16, 18, 0xc6},  {0, 1, 16, 0xd2},
      {10, 14, 15, 0x90}, {17, 20, 21, 0x76}, {2, 6, 20, 0x80},  {12, 18, 23, 0xa6}, {4, 22, 24, 0xa6},
      {0, 6, 10, 0x21},   {7, 21, 26, 0x6a},  {0, 5, 15, 0x70},  {8, 17, 28, 0x97},  {4, 27, 29, 0x6c}};
  static constexpr std::uint8_t outputs[] = {30, 19, 13, 25};
};

template <>
struct DesSbox<2> {
  static constexpr Gate gates[] = {{0, 1, 5, 0x97},    {4, 5, 6, 0x67},    {0, 4, 5, 0x76},   {1, 7, 8, 0x69},
                                   {2, 7, 9, 0x6a},    {1, 2, 4, 0x65},    {2, 6, 8, 0x8d},   {0, 11, 12, 0xca},
                                   {3, 10, 13, 0xc6},  {1, 4, 5, 0x14},    {4, 12, 15, 0xb5}, {2, 5, 7, 0x1c},
                                   {0, 11, 17, 0x96},  {3, 16, 18, 0x6a},  {0, 1, 9, 0xde},   {0, 2, 12, 0x90},
                                   {10, 18, 20, 0x79}, {4, 21, 22, 0x29},  {3, 20, 23, 0xa6}, {0, 0, 12, 0x4a},
                                   {1, 15, 18, 0xef},  {13, 25, 26, 0x8d}, {1, 4, 7, 0x2b},   {3, 27, 28, 0x6c}};
  static constexpr std::uint8_t outputs[] = {24, 19, 14, 29};
};

template <>
struct DesSbox<3> {
  static constexpr Gate gates[] = {
      {0, 2, 3, 0xc9},   {2, 4, 5, 0x4b},   {0, 6, 7, 0x4d},   {0, 3, 7, 0x69},    {2, 4, 6, 0xd6},
      {5, 9, 10, 0x9c},  {1, 8, 11, 0xa6},  {0, 3, 5, 0x49},   {0, 4, 6, 0x9b},    {0, 13, 14, 0x66},
      {0, 2, 5, 0x6f},   {3, 15, 16, 0xeb}, {1, 15, 17, 0x6c}, {0, 2, 3, 0x98},    {11, 13, 16, 0x1d},
      {5, 19, 20, 0x9a}, {0, 3, 10, 0xb2},  {4, 6, 9, 0x3d},   {5, 22, 23, 0xa6},  {1, 21, 24, 0xa6},
      {0, 2, 5, 0xc6},   {9, 16, 26, 0xdb}, {4, 14, 20, 0xb9}, {21, 26, 28, 0x9b}, {1, 27, 29, 0xa6}};
  static constexpr std::uint8_t outputs[] = {12, 30, 25, 18};
};

template <>
struct DesSbox<4> {
  static constexpr Gate gates[] = {
      {0, 3, 4, 0x36},   {2, 3, 4, 0x24},  {1, 2, 6, 0xa4},    {7, 0, 8, 0xb6},   {0, 3, 4, 0x6c},  {1, 2, 10, 0x5e},
      {0, 7, 11, 0xd6},  {0, 9, 10, 0xd4}, {2, 6, 13, 0xd6},   {0, 1, 14, 0x96},  {5, 9, 15, 0xc9}, {5, 9, 15, 0x93},
      {9, 12, 12, 0x3c}, {1, 3, 18, 0x72}, {19, 15, 15, 0x3c}, {5, 20, 12, 0x5c}, {5, 20, 12, 0x35}};
  static constexpr std::uint8_t outputs[] = {21, 22, 16, 17};
};

template <>
struct DesSbox<5> {
  static constexpr Gate gates[] = {{0, 2, 5, 0x54},   {0, 4, 5, 0x46},    {1, 6, 7, 0x8e},    {0, 2, 7, 0x38},
                                   {0, 4, 8, 0x32},   {1, 9, 10, 0x16},   {0, 2, 4, 0xb6},    {1, 5, 12, 0x96},
                                   {0, 7, 13, 0xca},  {2, 6, 13, 0x18},   {1, 14, 15, 0x16},  {9, 10, 13, 0x9e},
                                   {5, 7, 16, 0x32},  {13, 17, 18, 0x6e}, {0, 11, 12, 0x0e},  {9, 18, 20, 0x56},
                                   {8, 13, 21, 0xd6}, {11, 22, 20, 0x7e}, {12, 21, 17, 0x74}, {10, 15, 21, 0xda},
                                   {3, 24, 19, 0xca}, {3, 13, 16, 0x3a},  {3, 8, 11, 0xa9},   {3, 23, 25, 0xa6}};
  static constexpr std::uint8_t outputs[] = {26, 27, 28, 29};
};

template <>
struct DesSbox<6> {
  static constexpr Gate gates[] = {{0, 2, 4, 0xb2},    {0, 1, 6, 0x66},   {0, 0, 4, 0xa9},    {2, 7, 8, 0xa9},
                                   {3, 7, 9, 0xc6},    {4, 7, 9, 0xad},   {0, 3, 11, 0xe4},   {5, 10, 12, 0x6c},
                                   {1, 8, 10, 0x20},   {2, 3, 4, 0x69},   {11, 14, 15, 0x9e}, {0, 1, 15, 0x49},
                                   {4, 6, 17, 0x93},   {5, 16, 18, 0x6c}, {3, 10, 14, 0xa4},  {4, 16, 20, 0x76},
                                   {2, 3, 4, 0xcd},    {9, 21, 22, 0x86}, {5, 21, 23, 0xa6},  {1, 13, 18, 0x2d},
                                   {14, 16, 25, 0x26}, {2, 7, 12, 0x6b},  {9, 26, 27, 0xa2},  {5, 26, 28, 0xca}};
  static constexpr std::uint8_t outputs[] = {24, 29, 19, 13};
};

template <>
struct DesSbox<7> {
  static constexpr Gate gates[] = {{0, 1, 3, 0x0b},    {0, 3, 4, 0x27},   {2, 6, 7, 0x9e},   {0, 2, 4, 0xa6},
                                   {1, 8, 9, 0x6b},    {3, 6, 10, 0xa9},  {5, 8, 11, 0x6a},  {0, 1, 2, 0x63},
                                   {1, 7, 9, 0xe7},    {3, 13, 14, 0x93}, {1, 10, 14, 0x5d}, {3, 9, 16, 0x6e},
                                   {5, 15, 17, 0xc6},  {2, 3, 9, 0x6d},   {2, 13, 19, 0xa6}, {0, 1, 4, 0x23},
                                   {11, 20, 21, 0x72}, {5, 20, 22, 0xac}, {0, 2, 3, 0x21},   {7, 17, 22, 0xa4},
                                   {21, 24, 25, 0x96}, {6, 20, 26, 0x3e}, {8, 22, 27, 0x6b}, {5, 26, 28, 0xc6}};
  static constexpr std::uint8_t outputs[] = {12, 29, 18, 23};
};

template <>
struct DesSbox<8> {
  static constexpr Gate gates[] = {{0, 1, 4, 0x9d},   {0, 0, 1, 0x83},    {0, 1, 4, 0x5b},    {2, 7, 8, 0x85},
                                   {3, 6, 9, 0xa6},   {1, 4, 10, 0xf9},   {3, 4, 9, 0x0e},    {7, 11, 12, 0x61},
                                   {5, 10, 13, 0x6c}, {0, 1, 2, 0xdf},    {1, 4, 10, 0xd4},   {3, 15, 16, 0x69},
                                   {0, 9, 17, 0x6f},  {2, 7, 18, 0xb9},   {5, 17, 19, 0xc6},  {1, 8, 17, 0x5c},
                                   {0, 10, 21, 0x71}, {3, 7, 8, 0xb9},    {11, 17, 23, 0x69}, {5, 22, 24, 0x6a},
                                   {0, 3, 23, 0xe2},  {11, 18, 26, 0x9c}, {5, 10, 27, 0x39}};
  static constexpr std::uint8_t outputs[] = {28, 20, 25, 14};
};

// All indices are template arguments: those of arrays that were left to run time would keep the nodes out of registers.
template <unsigned Table, std::size_t A, std::size_t B, std::size_t C, class Word>
WARPCIPHER_INLINE constexpr Word gate(const Word* nodes) {
  return lut3<Table>(nodes[A], nodes[B], nodes[C]);
}

template <class Circuit, class Word, std::size_t Inputs, std::size_t Outputs, std::size_t... Input, std::size_t... I,
          std::size_t... Output>
WARPCIPHER_INLINE constexpr void run(const Word (&in)[Inputs], Word (&out)[Outputs], std::index_sequence<Input...>,
                          std::index_sequence<I...>, std::index_sequence<Output...>) {
  Word nodes[Inputs + sizeof...(I)] = {in[Input]...};
  ((nodes[Inputs + I] =
        gate<Circuit::gates[I].table, Circuit::gates[I].a, Circuit::gates[I].b, Circuit::gates[I].c>(nodes)),
   ...);
  ((out[Output] = nodes[std::integral_constant<std::size_t, Circuit::outputs[Output]>::value]), ...);
}

template <class Circuit, class Word, std::size_t Inputs, std::size_t Outputs>
WARPCIPHER_INLINE constexpr void run(const Word (&in)[Inputs], Word (&out)[Outputs]) {
  run<Circuit>(in, out, std::make_index_sequence<Inputs>(), std::make_index_sequence<std::size(Circuit::gates)>(),
               std::make_index_sequence<Outputs>());
}

}  // namespace warpcipher::circuits
