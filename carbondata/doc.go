// Package carbondata reads Apache CarbonData: data files of version 3, folders of them as the Java
// SDK writes them, and transactional tables as Spark does. It writes folders that the SDK reads.
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
//	for row, err := range t.Rows(ctx, carbondata.ScanOptions{}) {
//		… // row[i] is of column t.Schema()[i]
//	}
//
// ScanOptions.Columns names the columns that a scan returns, and ScanOptions.Filter selects rows.
// No other columns are read. The filter's columns are read first, and the others only of pages in
// which it selects rows. Files, blocklets, and pages of which minima and maxima or dictionaries say
// that no row is selected are skipped, see ScanStats; a table with index files that do not agree
// with its data files is refused. Filters follow SQL: a comparison with NULL is not true, and
// neither is its negation.
//
//	o := carbondata.ScanOptions{Columns: []string{"name"}, Filter: carbondata.Gt("age", 30)}
//
// Table.Scan reads the same rows as batches of vectors, without an allocation for each value.
// Column.TableType is the type that a column has in a table of package oribi, and in a batch.
//
// The schema of a folder is the schema of its newest file, by the timestamp in its name. Columns of
// other files are matched by name, in a transactional table by ID. A column that a file does not
// have is its default, or nil; in a transactional table a file's INT may be the table's LONG, and a
// DECIMAL may have fewer digits. OpenFile and File.Rows read one data file over a block.Source.
//
// Of a transactional table Open reads the segments that tablestatus lists as visible: their segment
// files, or their folders, their partitions, and folders outside of the table, on this machine,
// that were added to it. The files that tableupdatestatus names list its deleted rows.
//
// It reads all types, ARRAY, STRUCT, and MAP nested to 32 levels, and the compressors snappy, zstd,
// and gzip, of files that SDK 1.4 and later wrote. A value is null where CarbonData's row reader
// returns null: a text equal to "@NU#LL$!" is null, a VARCHAR of length 0 is empty, a BINARY of
// length 0 is null, and so is an array or a map of exactly one null, and a struct of only nulls.
//
// ErrUnsupported names what it does not read: files of versions 1 and 2, streaming files, global
// dictionaries, files whose columns have other types than the table's, segments in other formats or
// file systems. Index files are read in transactional tables, and before a scan with a filter.
//
// A Table and a File are safe for concurrent use. Rows belong to the caller. Scans read pages, and
// a Writer adds and encodes columns, in up to four goroutines; what they return and write does not
// depend on how many there are.
//
// # Dates
//
// Days and Micros count from 1970-01-01 in the proleptic Gregorian calendar, as package time does.
// CarbonData's SDK takes and prints dates in Java's calendar, which is Julian up to 1582-10-04, the
// day before 1582-10-15, and the numbers in files follow from it. Values, filters, and the rows of
// a Writer are converted so that each has the date that the SDK prints. Times are in UTC.
//
// A February 29 that only the Julian calendar has, such as 1500-02-29, ends a scan that returns it
// with a *RowError. To a filter it is the day between those before and after it.
//
// # Writing
//
//	w, err := carbondata.Create(path, columns, carbondata.WriterOptions{SortColumns: []string{"name"}})
//	defer w.Abort()
//	err = w.Append([]any{"oribi", int32(3)}) // for each row; or AppendBatch
//	err = w.Close()                          // the folder appears
//
// The files equal the files of the SDK 2.3 with the same options: the same columns, pages,
// encodings, and blocklets, except where its choices lose values, or its bounds are wrong. Names
// are in lower case. Rows may come in any order: with sort columns they are sorted, through
// temporary files if need be.
//
// Values that CarbonData reads as other values are refused: a NULL in a VARCHAR, no bytes in a
// BINARY, an array or a map of exactly one NULL, a struct of only NULLs, the text "@NU#LL$!", text
// that is not UTF-8, a STRING of more than 32000 characters or 32767 bytes, a time below the
// millisecond. So are dates, also of times, that the SDK does not have: dates before 0001-01-01,
// from 1582-10-05 to 1582-10-14, and after 9999-12-31. A folder has at least one row. A row has at
// most 4 MiB of text, and 131072 values in nested columns.
//
// # Damaged files
//
// Input is not trusted. Lengths and counts are checked before use, memory for a page grows with the
// bytes that the codec produces, and all pages that are read at once have one limit by the size of
// the file. Errors wrap ErrCorrupt or ErrUnsupported and name file, blocklet, column, and page. The
// format has no checksums, except in gzip: some changed bits change values without any sign.
// Structure, counts, and sizes are checked by every read; Table.Verify also compares index files,
// minima and maxima, the order of sorted rows, and dictionaries with the data.
//
// Source: carbondata spec.
package carbondata
