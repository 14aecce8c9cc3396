// Package cfile reads and writes CFiles: one run of values of one type in one block, in Apache
// Kudu's format, byte for byte.
//
// A file is a header, then cblocks one behind the other, then a footer. A cblock is a checksummed
// and perhaps compressed piece: data (some thousand values in one encoding), index, dictionary,
// zone map. Two trees of index cblocks lead to the data: from ordinals (positions in the file) and,
// in sorted files, from values. Only the footer is found without a pointer:
//
//	header | data, data, …, index, data, … index roots | dictionary | zone map | footer
//
// Writing:
//
//	w, err := cfile.NewWriter(sink, cfile.WriterOptions{Type: schema.Int64, PositionalIndex: true})
//	err = w.Append(vector) // as often as needed
//	err = w.Finish()
//
// Reading, by windows of ordinals, by runs of one cell, by ordinal, by value:
//
//	r, err := cfile.Open(source, cfile.ReaderOptions{Cache: c})
//	n, err := r.NewColumnReader().ReadVector(ordinal, 4096, vector)
//	err := r.NewColumnReader().ReadRuns(ordinal, rows, func(run cfile.Run) error { … })
//	cell, err := r.Cell(ordinal)
//	ordinal, exact, err := r.Seek(cell)
//
// Columns of arrays (WriterOptions.Array, Info.Array) come and go as vectors in array form; they
// have no value index, no zone map, and no single cells.
//
// A Writer and a ColumnReader are used by one goroutine; a Reader may be used by many at once. Byte
// strings that are handed out alias memory that is never written again: they hold as long as they
// are referenced. Cells of fixed width in vectors are copies; those of Cell are not to be changed.
//
// Nothing read is trusted: pointers, counts and lengths are checked before use, index trees must
// place children before their parents, and every byte of a cblock is under its CRC-32C where the
// file has checksums. Errors wrap ErrCorrupt or ErrUnsupported and name block and byte
// offset. Beside what it hands out a Reader holds at most 1 MiB, 64 times the bytes of the file and
// one uncompressed cblock.
//
// What we add to Kudu's format is the zone map, a cblock that a pair in the footer points to:
// bounds of each data cblock, and its CRC, so that a good cblock in the wrong place is noticed.
// Kudu ignores it. WriterOptions.Exact leaves it out.
//
// Simpler than Kudu: the trees are read once and kept flat in memory, which costs 32 bytes and the
// key of each data cblock and saves the walk; no lazy open, but trees are loaded on first use.
//
// Source: cfile spec.
package cfile
