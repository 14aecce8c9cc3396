package carbondata

import (
	"github.com/oribi-db/oribi/internal/fault"
)

// Index file: the data files of one task, with what their footers say. An IndexHeader, then a
// BlockIndex for each blocklet, up to the end. Source: carbondata spec §4.3, §10.
//
// IndexHeader:
//
//	ID  type    field          meaning
//	1   i32     version        3
//	2   list    table_columns  see ColumnSchema; not used
//	3   struct  segment_info   not used
//
// BlockIndex:
//
//	ID  type    field        meaning
//	1   i64     num_rows     of the data file, not of the blocklet
//	2   binary  file_name    in the folder of the index file
//	3   i64     offset       of the data file's footer
//	4   struct  block_index  minima and maxima; not used yet
//	6   i64     file_size    of the data file; may be absent
//
// A merged index file is a MergedBlockIndexHeader (1: list of names of index files) and a
// MergedBlockIndex (1: list of the bytes of these files).
//
// 100 rows of the file "a" with its footer at byte 899: 16 c8 01  18 01 61  16 86 0e  1c 00  00
const (
	indexVersion = 1 // file format: never change
	indexColumns = 2 // file format: never change
	indexSegment = 3 // file format: never change

	entryRows   = 1 // file format: never change
	entryName   = 2 // file format: never change
	entryFooter = 3 // file format: never change
	entryBounds = 4 // file format: never change
	entrySize   = 6 // file format: never change

	mergedList = 1 // file format: never change
)

// indexEntry is a BlockIndex.
type indexEntry struct {
	rows   int64
	name   string
	footer int64
	size   int64 // 0: not in the entry
}

// parseIndex returns the entries of an index file.
func parseIndex(b []byte) (entries []indexEntry, err error) {
	r := thriftReader{b: b}
	version := 0
	r.fields("IndexHeader", func(id int, typ byte) {
		if id == indexVersion {
			version = r.i32(typ)
		} else {
			r.skip(typ)
		}
	}, indexVersion, indexColumns, indexSegment)
	if r.err == nil && version != version3 {
		return nil, fault.Unsupportedf("index of version %d", version)
	}
	for r.err == nil && r.at < len(b) {
		var e indexEntry
		r.fields("BlockIndex", func(id int, typ byte) {
			switch id {
			case entryRows:
				e.rows = r.i64(typ)
			case entryName:
				e.name = r.text(typ)
			case entryFooter:
				e.footer = r.i64(typ)
			case entrySize:
				e.size = r.i64(typ)
			default:
				r.skip(typ)
			}
		}, entryRows, entryName, entryFooter, entryBounds)
		entries = append(entries, e)
	}
	if r.err == nil && len(entries) == 0 {
		return nil, fault.Corruptf("an index without data files")
	}
	return entries, r.err
}

// parseMerged returns the entries of all index files in a merged one.
func parseMerged(b []byte) (entries []indexEntry, err error) {
	r := thriftReader{b: b}
	list := func(name string) (n [][]byte) {
		r.fields(name, func(id int, typ byte) {
			if id != mergedList {
				r.skip(typ)
				return
			}
			r.list(typ, func(typ byte) { n = append(n, r.bytes(typ)) })
		}, mergedList)
		return n
	}
	names, files := list("MergedBlockIndexHeader"), list("MergedBlockIndex")
	if r.err == nil && (len(names) != len(files) || r.at != len(b)) {
		r.fail("%d index files, want %d, up to byte %d", len(files), len(names), len(b))
	}
	if r.err != nil {
		return nil, r.err
	}
	for i, file := range files {
		more, err := parseIndex(file)
		if err != nil {
			return nil, inside(err, "index file %q", names[i])
		}
		entries = append(entries, more...)
	}
	return entries, nil
}

// checkFile compares an entry with its data file.
func (e *indexEntry) checkFile(f *File) error {
	at, err := f.frame()
	if err != nil {
		return err
	}
	if e.footer != at || e.rows != f.rows || e.size != 0 && e.size != f.src.Size() {
		return fault.Corruptf("the index says %d rows, the footer at byte %d of %d; want %d rows, at byte %d of %d", e.rows, e.footer, e.size, f.rows, at, f.src.Size())
	}
	return nil
}
