// Package carbondata reads Apache CarbonData: data files of version 3, folders of them as the Java
// SDK writes them, and transactional tables as Spark does.
//
// # The format, from the bottom up
//
// A value is a number, a date, a time, a text, or bytes. The values of one column for up to 32767
// rows are a page, in one of several forms: numbers in as few bytes as the page needs, strings with
// their lengths, or references to a dictionary; sorted pages also have the row of each entry. Each
// page is compressed. An ARRAY, a STRUCT, or a MAP is a page of counts and a page for each child,
// with a value for each element. The pages of one column are back to back after a header, as a
// column chunk; the chunks of all columns, for some thousands or millions of rows, are a blocklet.
// A data file has a header with the columns, the blocklets, a footer with their places, and the
// footer's position:
//
//	header, column chunks of blocklet 0, of blocklet 1, …, footer, position of the footer
//
// A folder contains any number of data files, each complete, and index files next to them, which
// repeat what the footers say. A file of deleted rows names rows of one data file. A transactional
// table also has a schema file and a list of segments; a segment names its index files, and these
// their data files. Headers and footers are messages of Thrift's compact protocol. Each
// part has a table, with an example in hex, above the constants that fix it; docs/formats.md links
// them.
//
// # Reading
//
//	t, err := carbondata.Open(path) // a table, a folder, or one data file
//	defer t.Close()
//	for row, err := range t.Rows(ctx) { … } // row[i] is of column t.Schema()[i]
//
// The schema of a folder is that of its newest file, by the timestamp in its name. Columns of other
// files are matched by name, in a transactional table by ID, and are nil where a file does not have
// them. OpenFile and File.Rows read one data file over a block.Source.
//
// It reads all types, ARRAY, STRUCT, and MAP nested to 32 levels, and the compressors snappy, zstd,
// and gzip, of files that SDK 1.4 and later wrote. Nulls are those of CarbonData's row reader: a
// text equal to "@NU#LL$!" is null, a VARCHAR of length 0 is empty, a BINARY of length 0 is null,
// and so is an array or a map of exactly one null, and a struct of only nulls.
//
// ErrUnsupported names what it does not read: files of versions 1 and 2, streaming files, global
// dictionaries, defaults of columns that a file does not have, files whose columns have other types
// than the table's; in transactional tables deleted rows, partitions, segments outside of the
// table, and segments without a segment file. Index files are read in transactional tables, and by
// CheckIndex.
//
// A Table and a File are safe for concurrent use. Rows belong to the caller.
//
// # Damaged files
//
// Input is not trusted. Lengths and counts are checked before use, and memory for a page grows with
// what the codec produces. Errors wrap ErrCorrupt or ErrUnsupported and name file, blocklet,
// column, and page. The format has no checksums, except in gzip: some changed bits change values
// without any sign. Structure, counts, and sizes are checked by every read.
//
// Source: carbondata spec.
package carbondata
