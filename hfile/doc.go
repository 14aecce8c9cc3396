// Package hfile reads and writes HFiles: sorted files of keys and values, as Apache HBase stores
// its cells and Apache Hudi its metadata table.
//
// # The format, from the bottom up
//
// An entry is a cell: a key and a value. The key has a row, a column (family and qualifier), a
// timestamp, and a type such as Put or DeleteColumn. Cells are sorted by row, then column, then
// newest first: see Key.Compare. A cell may have tags and a sequence ID, which are not part of the
// key. Hudi uses the row as its key, leaves the column empty, and always writes the same timestamp
// and type, so its entries are pairs of key and value.
//
// Cells are stored back to back in data blocks, of 64 KiB in HBase and up to 1 MiB in Hudi. In a
// data block with an encoding, cells refer to the one before them (PREFIX, DIFF, FAST_DIFF), or an
// index of rows follows them (ROW_INDEX_V1). Each block is compressed on its own, has a header with
// its type and sizes, and ends with checksums of its stored bytes.
//
// The index has a key for each data block. It is one block, or a tree: leaf blocks are stored
// between the data blocks, intermediate blocks after them, the root near the end. A key of the
// index may be shorter than the first key of its block: it is after the last key of the block
// before. Meta blocks contain what users store under a name. File info has named values of a few
// bytes. The trailer, at the end, says where all of that is:
//
//	data blocks, leaf blocks, chunks of Bloom filters, in the order of the keys
//	meta blocks, intermediate blocks of the index
//	root of the index, meta index, file info, metadata of Bloom filters
//	trailer
//
// Three bytes "abc" of a meta block, not compressed, with a CRC-32C of all before it:
//
//	4d 45 54 41 42 4c 4b 63  type: METABLKc
//	00 00 00 07              7 bytes after the header: payload and one checksum
//	00 00 00 03              3 bytes of payload, uncompressed
//	ff ff ff ff ff ff ff ff  no previous block of this type
//	02  00 00 40 00          checksums: CRC-32C, each of 16384 bytes at most
//	00 00 00 24              36 bytes of header and stored payload
//	61 62 63                 payload
//	8f e9 ee ca              checksum of the 36 bytes
//
// Each part has such a table, with an example in hex, above the constants that fix it;
// docs/formats.md links them.
//
// # Reading
//
//	r, err := hfile.Open(source, hfile.ReaderOptions{})
//	for cell, err := range r.Cells() { … }           // in order; also between two rows, or KeyValues
//	cells, err := r.Get(row)                         // asks the Bloom filter first
//	for kv, err := range r.ScanPrefix(prefix) { … }
//	c := r.NewCursor(hfile.CursorOptions{})          // seeks with the codes of HBase and Hudi
//
// A file has two views. In HBase's view whole keys are compared, in Hudi's only rows. The reader
// returns what the file contains: it does not apply deletes or choose versions.
//
// It reads version 3 with any minor version and version 2.3; the codecs GZ, SNAPPY, LZ4, and ZSTD;
// all encodings; indexes of up to 64 levels; Bloom filters of both systems; and the forms that
// Hudi's releases wrote by mistake (index keys that end after the row, their lengths as protobuf's
// varints). ErrUnsupported names what it does not read: other versions, LZO, BZIP2, encryption,
// encoded index blocks, file info of HBase before 0.96, hbase:meta's order of keys.
//
// A Reader is safe for concurrent use; a Cursor is not. The slices of a cell are valid until its
// cursor or iteration moves on; those that Get returns belong to the caller.
//
// # Writing
//
//	w, err := hfile.Create(name, hfile.WriterOptions{Codec: hfile.GZ, Bloom: hfile.BloomRow})
//	err = w.Append(cell) // in order
//	err = w.Finish()
//
// A file appears under its name when it is complete. The output has the bytes that HBase 2.6 or
// Hudi's own writer would have written, see WriterOptions.Like. A Writer keeps one data block, one
// chunk of a Bloom filter, and one block of each level of the index in memory. It is for use by one
// goroutine.
//
// # Damaged files
//
// Input is not trusted. Lengths are checked before use, blocks of each level of the index must
// ascend in the file, and the memory for a block grows with the output of the codec, not with the
// size that its header states. Errors wrap ErrCorrupt or ErrUnsupported and name the block and its
// offset. Reading a file takes at most 32 times its size and 32 MiB, without a cache: it keeps the
// blocks that Open reads, and a cursor has one block of each level of the index and one data block,
// or a few if it reads ahead. Verify checks everything, and compares the index, the counts, file
// info, and the Bloom filters with the entries.
//
// Checksums of type CRC-32 and CRC-32C cover every byte of a block, so every changed bit in it is
// an error. The trailer has no checksum: a change there is an error, or does not change any answer.
// Hudi's native writer uses checksums of type NULL, which contain nothing: in its files a changed
// value cannot be found.
//
// Source: hfile spec.
package hfile
