// Package arrowio moves rows between tables and Apache Arrow, Arrow files and streams, and Parquet
// files.
//
// NewReader returns a scan as an Arrow record reader. WriteParquet, WriteFile, and WriteStream
// write the rows of any record reader. OpenParquet, OpenArrow, and OpenStream open files; File.Read
// returns their rows, of chosen columns and selected by predicates. Ingest and Append write the
// rows of a record reader and of a record batch into a table:
//
//	r, err := arrowio.NewReader(table.Scan(ctx), arrowio.ReaderOptions{})
//	…
//	defer r.Release()
//	rows, err := arrowio.WriteParquet(out, r, arrowio.ParquetOptions{})
//
// # Types
//
// Each column has one Arrow type and one Parquet type (see NewReader, WriteParquet), except int128,
// which is refused. A column takes the values of all types that it can represent exactly; any other
// type, and any other value, is refused with a *ColumnError that names the column. Timestamps are
// in UTC; a type without a time zone is read as UTC. Times of day and durations become int64, in
// their unit; see Definition.Notes.
//
// Schema stores the definition of a table (key columns, lengths of varchars, defaults, encodings,
// properties, and indexes) in the metadata of the Arrow schema, and WriteParquet in the metadata of the
// file, so that Define and File.Definition return the same table. Without it, the types follow from
// the file's types.
//
// # Memory
//
// Where the layouts agree, neither direction copies cells: integers, floats, dates, timestamps,
// decimals of more than 18 digits, codes of dictionaries, and presence bitmaps. The vectors of a
// scan that become arrays are not reused; the garbage collector frees them. All other buffers come
// from the allocator in the options and are freed when the last reference is released.
//
// Readers and writers have one record batch, of up to 4096 rows of a scan or a Parquet file, in
// memory, WriteParquet the pages of one row group, and a reader of Parquet a page of each column.
// Ingest decodes a Parquet file in a goroutine of its own and has up to three record batches.
//
// Byte strings that repeat are in dictionary form in batches from a Parquet file, up to 2048 words
// of 256 KiB in each row group.
//
// Damaged files cause errors that wrap ErrCorrupt. Checksums of Parquet pages, of gzip, and of zstd
// are verified where a file has them. WriteParquet writes only the checksums of the codecs, and
// Arrow files have none, so damage to a value may also just change the value. Reading allocates no
// single buffer of more than 1 GiB, whatever lengths a file states.
//
// Nothing here is safe for concurrent use, except that a File may be read several times at once.
package arrowio
