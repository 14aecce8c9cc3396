// Package cfile reads and writes CFiles: a sequence of values of one type in one block, in Apache
// Kudu's format, byte for byte.
//
// A file is a header, then cblocks back to back, then a footer. A cblock is a checksummed and
// optionally compressed piece: data (a few thousand values in one encoding), index, dictionary, or
// zone map. Two trees of index cblocks lead to the data: one from ordinals (positions in the file)
// and, in sorted files, one from values. Only the footer is found without a pointer:
//
//	header | data, data, …, index, data, … index roots | dictionary | zone map | footer
//
// Writing:
//
//	w, err := cfile.NewWriter(sink, cfile.WriterOptions{Type: schema.Int64, PositionalIndex: true})
//	err = w.Append(vector) // as often as needed
//	err = w.Finish()
//
// Reading windows of ordinals, runs of equal cells, one ordinal, or by value:
//
//	r, err := cfile.Open(source, cfile.ReaderOptions{Cache: c})
//	n, err := r.NewColumnReader().ReadVector(ordinal, 4096, vector)
//	err := r.NewColumnReader().ReadRuns(ordinal, rows, func(run cfile.Run) error { … })
//	cell, err := r.Cell(ordinal)
//	ordinal, exact, err := r.Seek(cell)
//
// Columns of arrays (WriterOptions.Array, Info.Array) are written and read as vectors in array
// form. They have no value index, no zone map, and no access to single cells.
//
// A Writer and a ColumnReader are for use by one goroutine; a Reader may be used by many at once.
// Returned byte strings alias memory that is never overwritten. Cells of fixed width in vectors are
// copies; those returned by Cell must not be changed.
//
// Input is not trusted: pointers, counts and lengths are checked before use, index trees must place
// children before their parents, and the CRC-32C covers every byte of a cblock where the file has
// checksums. Errors wrap ErrCorrupt or ErrUnsupported and name the block and the byte offset. In
// addition to the cells that it returns, a Reader uses at most 1 MiB plus 64 times the file's size
// plus one uncompressed cblock.
//
// The zone map is our addition to Kudu's format. It is a cblock that a pair in the footer points
// to, with the bounds of each data cblock and its CRC, which detects a valid cblock in the wrong
// place. Kudu ignores it. WriterOptions.Exact leaves it out.
//
// Simpler than Kudu: each index tree is read as a whole on first use and kept flat in memory. That
// costs 32 bytes plus the key for each data cblock, and saves the walk down the tree.
//
// Source: cfile spec.
package cfile
