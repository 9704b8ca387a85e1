// SPDX-License-Identifier: Apache-2.0
// The known-answer self-test: an engine must reproduce one answer of every algorithm that it offers before it runs
// anything else.
#pragma once

#include <cstddef>
#include <string_view>

#include "engine/engine.hpp"

namespace warpcipher {

// Tests an engine that can run here, once in the life of the process. Throws Error{engine_unavailable} that names the
// algorithm if an answer was wrong, then and on every later call.
void require_self_test(Engine& engine);

// One known answer for every algorithm. Text: the four blocks of SP 800-38A, appendix F (the modes that take any length
// leave the last three bytes off); AES keys, IVs and counters are from that appendix, so AES answers of ECB, CBC,
// CFB, OFB and CTR are the published ones. GCM: nonce and AAD of the GCM specification's test case 4. The remaining
// answers were computed with OpenSSL, and of GCM-SIV and XChaCha20 with OpenSSL 4. All in hexadecimal; an AEAD's tag
// follows its ciphertext.
struct KnownAnswer {
  std::string_view algorithm, key, iv, aad;
  std::size_t text_len;
  std::string_view ciphertext;
};

inline constexpr std::string_view known_answer_text =
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";

inline constexpr std::string_view known_answer_aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2";

inline constexpr KnownAnswer known_answers[] = {
    {"aes-128-ecb", "2b7e151628aed2a6abf7158809cf4f3c", "", "", 64,
     "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf43b1cd7f598ece23881b00e3ed030688"
     "7b0c785e27e8ad3f8223207104725dd4"},
    {"aes-128-cbc", "2b7e151628aed2a6abf7158809cf4f3c", "000102030405060708090a0b0c0d0e0f", "", 64,
     "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e22229516"
     "3ff1caa1681fac09120eca307586e1a7"},
    {"aes-128-cfb", "2b7e151628aed2a6abf7158809cf4f3c", "000102030405060708090a0b0c0d0e0f", "", 61,
     "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b26751f67a3cbb140b1808cf187a4f4df"
     "c04b05357c5d1c0eeac4c66f9f"},
    {"aes-128-cfb8", "2b7e151628aed2a6abf7158809cf4f3c", "000102030405060708090a0b0c0d0e0f", "", 61,
     "3b79424c9c0dd436bace9e0ed4586a4f32b9ded50ae3ba69d472e88267fb505270cbad1e257691f7c47c5038297edda3"
     "2ff26d0ed19174096161ecc140"},
    {"aes-128-ofb", "2b7e151628aed2a6abf7158809cf4f3c", "000102030405060708090a0b0c0d0e0f", "", 61,
     "3b3fd92eb72dad20333449f8e83cfb4a7789508d16918f03f53c52dac54ed8259740051e9c5fecf64344f7a82260edcc"
     "304c6528f659c77866a510d9c1"},
    {"aes-128-ctr", "2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "", 61,
     "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab"
     "1e031dda2fbe03d1792170a0f3"},
    {"aes-128-gcm", "2b7e151628aed2a6abf7158809cf4f3c", "cafebabefacedbaddecaf888", known_answer_aad, 61,
     "6ac7d9f77a1c8a43af5be6373b9f656281ade2f91ae5ae428656a3e0bf5dde1e69dbb5a61f1c5d69decf7c80c9461934"
     "35d0f34ac5c4bffa35a2587ed3046e57d06201765c3825de0abe8c1e76"},
    {"aes-128-xts", "2b7e151628aed2a6abf7158809cf4f3c8edbb0b38d0b77030e52b02dac6aea99",
     "000102030405060708090a0b0c0d0e0f", "", 61,
     "1ff3d40061f63380ceb4241dafe8b2bcb579da43d071a019fe87aaad08ab40480d9956f13875c4f0ecf69de91de8805d"
     "0643b0314269890156ff40f46a"},
    {"aes-192-ecb", "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "", "", 64,
     "bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eefef7afd2270e2e60adce0ba2face6444e"
     "9a4b41ba738d6c72fb16691603c18e0e"},
    {"aes-192-cbc", "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "000102030405060708090a0b0c0d0e0f", "", 64,
     "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a571b242012fb7ae07fa9baac3df102e0"
     "08b0e27988598881d920a9e64f5615cd"},
    {"aes-192-cfb", "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "000102030405060708090a0b0c0d0e0f", "", 61,
     "cdc80d6fddf18cab34c25909c99a417467ce7f7f81173621961a2b70171d3d7a2e1e8a1dd59b88b1c8e60fed1efac4c9"
     "c05f9f9ca9834fa042ae8fba58"},
    {"aes-192-cfb8", "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "000102030405060708090a0b0c0d0e0f", "", 61,
     "cda2521ef0a905ca44cd057cbf0d47a0678a7bcfb6aeaa3047b38936021f48bbb63cefdac02b2e840904efce6f4326be"
     "228683739063dc30e937ffedd6"},
    {"aes-192-ofb", "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "000102030405060708090a0b0c0d0e0f", "", 61,
     "cdc80d6fddf18cab34c25909c99a4174fcc28b8d4c63837c09e81700c11004018d9a9aeac0f6596f559c6d4daf59a5f2"
     "6d9f200857ca6c3e9cac524bd9"},
    {"aes-192-ctr", "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "", 61,
     "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e941e36b26bd1ebc670d1bd1d665620abf7"
     "4f78a7f6d29809585a97daec58"},
    {"aes-192-gcm", "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "cafebabefacedbaddecaf888", known_answer_aad,
     61,
     "d9f29c212e0ae29fa8abcc9265cb3d8b46e5728da46632698636613e0efa1b1958dccd55493fc82a3751dba6f9a97368"
     "988335f5c310003415c3d86b5182ae7242563dbafe40741732fdf54f0e"},
    {"aes-256-ecb", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "", "", 64,
     "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870b6ed21b99ca6f4f9f153e7b1beafed1d"
     "23304b7a39f9f3ff067d8d8f9e24ecc7"},
    {"aes-256-cbc", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
     "000102030405060708090a0b0c0d0e0f", "", 64,
     "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d39f23369a9d9bacfa530e26304231461"
     "b2eb05e2c39be9fcda6c19078c6a9d1b"},
    {"aes-256-cfb", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
     "000102030405060708090a0b0c0d0e0f", "", 61,
     "dc7e84bfda79164b7ecd8486985d386039ffed143b28b1c832113c6331e5407bdf10132415e54b92a13ed0a8267ae2f9"
     "75a385741ab9cef82031623d55"},
    {"aes-256-cfb8", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
     "000102030405060708090a0b0c0d0e0f", "", 61,
     "dc1f1a8520a64db55fcc8ac554844e889700adc6e10c63cf2d8cd2d8ce668f3eb9191719c47444fb43bff9b9883c2cd0"
     "51120402009f974998c89d1957"},
    {"aes-256-ofb", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
     "000102030405060708090a0b0c0d0e0f", "", 61,
     "dc7e84bfda79164b7ecd8486985d38604febdc6740d20b3ac88f6ad82a4fb08d71ab47a086e86eedf39d1c5bba97c408"
     "0126141d67f37be8538f5a8be7"},
    {"aes-256-ctr", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
     "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "", 61,
     "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988d"
     "dfc9c58db67aada613c2dd0845"},
    {"aes-256-gcm", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "cafebabefacedbaddecaf888",
     known_answer_aad, 61,
     "cce65692c1064eed7fa3046aa46bd8eaa9c7aa990b4f968bae83cae728c04f8c05a18f4f2dd6e117a6c0b8482ace7c73"
     "fcd0f1ae228fa6ab40ddf786d5153f11816e8599e6b7bbe2f53fb16753"},
    {"aes-256-xts",
     "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4c5984eb5b06fd41b8ed60b5520d8d224ba9089a29ec4ad728"
     "83db506acb17a51",
     "000102030405060708090a0b0c0d0e0f", "", 61,
     "9ef55e6671c7fb6cf89edd39bcdf7d0bda5de723c4a89aa4454454bc2f64d061775e6dec43066ec548aadbc8c6b880b8"
     "2b55ea07d4b4c199b9bfdfb070"},
    {"des-ecb", "0123456789abcdef", "", "", 64,
     "7277a00dc1c1c36b2256338b7a9f36ef6e511022cfebec489a4a53a1c7d22e5bf8994cd7da23631cea7e9849023eaf7d"
     "24823994aa5bbc98ba9b4757502dbe3d"},
    {"des-cbc", "0123456789abcdef", "f69f2445df4f9b17", "", 64,
     "2d121f90fcf68631ed788fcfe31a62dffa784891fa512ef928ea856d934257c66ad714eb2e9176b526280e9758abadec"
     "c70d07ccb23b54641173dcade38026e4"},
    {"des-cfb", "0123456789abcdef", "f69f2445df4f9b17", "", 61,
     "4f438776841b230e62e46bead5fed6e63f2f2c53844614b9d82e04309b9246c760eecf88603a485a668784544b3e1ebc"
     "a984cbeb75cdbff087a3ab63d0"},
    {"des-cfb8", "0123456789abcdef", "f69f2445df4f9b17", "", 61,
     "4f6c2788127b84a7a6aa3df8656ea5a36c246aa0951d9dc3faf274f0dffe89baf64dcbc8161fcb08ac78e86555a201df"
     "5b57fc146e568a3fdd71179751"},
    {"des-ofb", "0123456789abcdef", "f69f2445df4f9b17", "", 61,
     "4f438776841b230e32d18834c3293fcec0f4d3e96f199f38fa19f23b6dbb348270193ab73e6cda97dac314711f79a951"
     "fa093bbcb076ea175bdeddfb64"},
    {"des-ede2-ecb", "0123456789abcdef23456789abcdef01", "", "", 64,
     "06ede3d82884090aff322c19f0518486730576972a666e58b6c88cf107340d3d43bee3f3b0f9024c23fa1223c747572c"
     "0a540720edd996538fb964de76a507a3"},
    {"des-ede2-cbc", "0123456789abcdef23456789abcdef01", "f69f2445df4f9b17", "", 64,
     "7401ce1eab6d003caff84bf47b36cc2154f0238f9ffecd8f6acf118392b45581ada61acb9d107f1f212754d3028a1c31"
     "70004e292e9fb969a44eaf1e20c0e9eb"},
    {"des-ede2-cfb", "0123456789abcdef23456789abcdef01", "f69f2445df4f9b17", "", 61,
     "6195b9c2c39909c52ef313667b5a66af688672a3993aeae55b931ae24ee24c5c923c9d7cb7195d16ded4e61755255a89"
     "b907e4d63cf77fdf5cdd5a4dfc"},
    {"des-ede2-cfb8", "0123456789abcdef23456789abcdef01", "f69f2445df4f9b17", "", 61,
     "61d86d9aee9693fd0f67d3811b0980fb85dfb2b475463bea33fb236a5c2a31ac9bab58df4eade6d37e8e99f11cdd4591"
     "84ebc05b0e83851f17381e2882"},
    {"des-ede2-ofb", "0123456789abcdef23456789abcdef01", "f69f2445df4f9b17", "", 61,
     "6195b9c2c39909c53334ba77ffdccc80e485e85f0a63e7646d8d732e33241f94cb6eeea311e7b3f878c7ecb64daedd94"
     "a3585b50903140801f2fab3b12"},
    {"des-ede3-ecb", "0123456789abcdef23456789abcdef01456789abcdef0123", "", "", 64,
     "714772f339841d34267fcc4bd2949cc3ee11c22a576a303876183f99c0b6de873583992d38124eb5c6fcd81a0054e2df"
     "6c4a09ac778ee1400533463c6f961f25"},
    {"des-ede3-cbc", "0123456789abcdef23456789abcdef01456789abcdef0123", "f69f2445df4f9b17", "", 64,
     "2079c3d53aa763e193b79e2569ab5262516570481f25b50f73c0bda85c8e0da79bd86425fae429fdbd65a7a21b6e5d20"
     "925d8b0ef919a428154b96ed90f2bc1e"},
    {"des-ede3-cfb", "0123456789abcdef23456789abcdef01456789abcdef0123", "f69f2445df4f9b17", "", 61,
     "078bb74e59ce7ed67666de9cf95eaf3fe9ed6bb460f451528a5f9fe4ed710918822a8b431a0b7047cfc9fcfd074c50ce"
     "5959af0d4c0319471121967a17"},
    {"des-ede3-cfb8", "0123456789abcdef23456789abcdef01456789abcdef0123", "f69f2445df4f9b17", "", 61,
     "07951b729dc23ab448fc82b40372623dc443a4b443b6b4a66c20d892236028d5f4d6255f0c0d61d651641cc389826c86"
     "eceab6122bf05238db814731e9"},
    {"des-ede3-ofb", "0123456789abcdef23456789abcdef01456789abcdef0123", "f69f2445df4f9b17", "", 61,
     "078bb74e59ce7ed6267e120692667da1a58662d7e04cbc642144d55c03db5aee4168c711ef2b75278c484b0e3bc55259"
     "afc293230dbbaf1da7e87616d5"},
    {"aes-128-gcm-siv", "2b7e151628aed2a6abf7158809cf4f3c", "cafebabefacedbaddecaf888", known_answer_aad, 61,
     "236af99761f67fff692adc7940a932a6ac9dd51791811d22d4fdac27d9adf8850e9c4bf2dcb1afb535885f34971da189"
     "3e85fb452b5f2fb0524b47a37929465faf96760f843065252d4b33c2f5"},
    {"aes-256-gcm-siv", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "cafebabefacedbaddecaf888",
     known_answer_aad, 61,
     "ba86da3e76c887790257c8a7624ad7ac8d960889a5d8c71be0b58ae9a1fd6c429595ee35492c32ff4060309873fe2c83"
     "8c5e40b790d5a4ff945d8a695910245702c9bf8951a11c597b009f62e3"},
    {"aes-128-ccm", "2b7e151628aed2a6abf7158809cf4f3c", "cafebabefacedbaddecaf888", known_answer_aad, 61,
     "e1bdc8d127ddb3a22b580bfd180c9c8a0fe4fe72959b920215b31bf2db55b1ba2d5ba3d7e2d806b8f7e668aecbfd4713"
     "6d306771d53c60b601fbb11da9dae2175740336e4da4d75ce863a12a53"},
    {"aes-192-ccm", "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", "cafebabefacedbaddecaf888", known_answer_aad,
     61,
     "0c243bf80e8f6361c707337506219c801ad422b130dd55627edbba34e461b918d603343e42822e94aef144f9bda80e69"
     "9fbe281413c260d5d60049d3e1662424a35f4a72e203d067393763473e"},
    {"aes-256-ccm", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "cafebabefacedbaddecaf888",
     known_answer_aad, 61,
     "f5e926de9905353cffe6fbaf205805684c5557eaca2f908017df8d3359ec1d440ca70a972bba4fb38c9c9d5afb4e880c"
     "7d6c1f95c4cddc9278aacec861c919724f051cff114e84900cb5336a46"},
    {"chacha20", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "01000000cafebabefacedbaddecaf888",
     "", 61,
     "c377be7c291e80852dce20aaba4eb12114fff239cb675d9295a2230704fb353c079583d296bf7fd996983c7e1ed5ebf9"
     "42386cdb7f104b8370c19b5999"},
    {"chacha20-poly1305", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
     "cafebabefacedbaddecaf888", known_answer_aad, 61,
     "c377be7c291e80852dce20aaba4eb12114fff239cb675d9295a2230704fb353c079583d296bf7fd996983c7e1ed5ebf9"
     "42386cdb7f104b8370c19b5999324aa0a9075df06929365c181410cbd2"},
    {"xchacha20-poly1305", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
     "404142434445464748494a4b4c4d4e4f5051525354555657", known_answer_aad, 61,
     "61f375f11e672e491385d8310a3f3d5375fff74edb448158d6c3cd1f0c893634b3d7dbe638b4504c068fd873c6a5c27c"
     "73338f89b29f19d50acff006ab942fbecd597bfec9f9c74dd92b8ef3e7"},
};

}  // namespace warpcipher
