// SPDX-License-Identifier: Apache-2.0
// The numbers of fields in parquet.thrift that encryption touches.
#pragma once

namespace warpcipher::parquet {

namespace row_group {
enum : int { columns = 1, total_byte_size = 2, rows = 3, file_offset = 5, total_compressed_size = 6, ordinal = 7 };
}

namespace column_chunk {
enum : int {
  file_path = 1,
  file_offset = 2,
  metadata = 3,
  offset_index_offset = 4,
  offset_index_length = 5,
  column_index_offset = 6,
  column_index_length = 7,
  crypto_metadata = 8,
  encrypted_metadata = 9,
};
}

namespace column_metadata {
enum : int {
  values = 5,
  uncompressed_size = 6,
  compressed_size = 7,
  data_page_offset = 9,
  index_page_offset = 10,
  dictionary_page_offset = 11,
  bloom_filter_offset = 14,
  bloom_filter_length = 15,
};
}

namespace page_header {
enum : int { page_type = 1, uncompressed_size = 2, compressed_size = 3, checksum = 4 };
}

}  // namespace warpcipher::parquet
