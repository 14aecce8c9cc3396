package storeinfo

import "github.com/oribi-db/oribi/schema"

// Stats contains counts of a table.
type Stats struct {
	LiveRows int64 // at the newest state
	RowSets  int
	Bytes    int64 // of all files
	MemBytes int64 // rows and changes not yet flushed
	RowFiles int   // rowsets with a row file

	RowFileBytes int64 // of all row files, included in Bytes

	KeyDirectories    int   // rowsets with a stored key directory
	KeyDirectoryBytes int64 // of all of them, included in Bytes
	Columns           []ColumnStats
}

// ColumnStats contains the size, encodings, and compressions of a column. If the schema leaves the
// encoding or compression open, it may differ between rowsets.
type ColumnStats struct {
	Name         string
	Bytes        int64                // of the column's files in all rowsets
	Encodings    []schema.Encoding    // of the files, each once, never Auto; empty without files
	Compressions []schema.Compression // likewise, never DefaultCompression
}

// CompressionAdvice estimates the savings of other compressions of a column.
type CompressionAdvice struct {
	Column string
	// LZ4HC and Dense are the shares of the bytes of its files that a rewrite for schema.LZ4HC and
	// schema.Dense would save; 0 if it would not pay.
	LZ4HC, Dense float64
}
