package carbondata

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/fault"
)

// Index file: the data files of one task, with the content of their footers. An IndexHeader, then a
// BlockIndex for each blocklet, up to the end. Source: carbondata spec §4.3, §10.
//
// IndexHeader:
//
//	ID  type    field          meaning
//	1   i32     version        3
//	2   list    table_columns  see ColumnSchema; not used but their number
//	3   struct  segment_info   see SegmentInfo
//	4   i32     bucket_id
//	5   i64     schema_time_stamp
//	6   bool    is_sort        the rows of the data files are sorted
//
// BlockIndex:
//
//	ID  type    field          meaning
//	1   i64     num_rows       of the data file, not of the blocklet
//	2   binary  file_name      in the folder of the index file
//	3   i64     offset         of the data file's footer
//	4   struct  block_index    minima and maxima of the blocklet, see bounds
//	5   struct  blocklet_info  see BlockletInfo3; absent in old files
//	6   i64     file_size      of the data file; may be absent
//
// A merged index file is a MergedBlockIndexHeader (1: list of names of index files) and a
// MergedBlockIndex (1: list of the bytes of these files).
//
// The header of the index of a file with the STRING "a":
//
//	15 06  19 1c 15 00 18 01 61 18 01 61 11 19 05 11 00  1c 15 02 19 05 00  00
//
// The header of a merged index file with the index file "b": 19 18 01 62 00
//
// 100 rows of the file "a" with its footer at byte 899: 16 c8 01  18 01 61  16 86 0e  1c 00  00
const (
	indexVersion = 1 // file format: never change
	indexColumns = 2 // file format: never change
	indexSegment = 3 // file format: never change
	indexBucket  = 4 // file format: never change
	indexTime    = 5 // file format: never change
	indexSorted  = 6 // file format: never change

	entryRows     = 1 // file format: never change
	entryName     = 2 // file format: never change
	entryFooter   = 3 // file format: never change
	entryBounds   = 4 // file format: never change
	entryBlocklet = 5 // file format: never change
	entrySize     = 6 // file format: never change

	mergedList = 1 // file format: never change
)

// indexHeader is an IndexHeader.
type indexHeader struct {
	columns           int
	segment           segmentInfo
	bucket            int
	hasTime           bool
	sorted, hasSorted bool
}

// indexFile is the content of one index file.
type indexFile struct {
	name    string // of one in a merged index file
	size    int
	header  indexHeader
	entries []indexEntry
}

// indexEntry is a BlockIndex.
type indexEntry struct {
	rows   int64
	name   string
	footer int64
	size   int64 // 0: not in the entry

	blocklet *blocklet // nil: not in the entry
	bounds   bounds
}

// indexedFile has the entries of an index file about one data file.
type indexedFile struct {
	indexEntry               // the first
	header     indexHeader   // of the index file
	entries    []*indexEntry // all, one for each blocklet, in their order
}

// parseIndex reads an index file.
func parseIndex(b []byte) (f indexFile, err error) {
	r := thrift.Reader{In: b}
	version := 0
	h := &f.header
	f.size = len(b)
	r.Fields("IndexHeader", func(id int, typ byte) {
		switch id {
		case indexVersion:
			version = r.I32(typ)
		case indexColumns:
			r.List(typ, func(typ byte) {
				h.columns++
				r.Skip(typ)
			})
		case indexSegment:
			h.segment = readSegmentInfo(&r, typ)
		case indexBucket:
			h.bucket = r.I32(typ)
		case indexTime:
			r.Skip(typ)
			h.hasTime = true
		case indexSorted:
			h.sorted, h.hasSorted = r.Bool(typ), true
		default:
			r.Skip(typ)
		}
	}, indexVersion, indexColumns, indexSegment)
	if r.Err == nil && version != version3 {
		return f, fault.Unsupportedf("index of version %d", version)
	}
	for r.Err == nil && r.At < len(b) {
		e := readIndexEntry(&r, h.columns)
		if r.Err == nil {
			r.Err = inside(e.bounds.check(h.columns), "data file %q", e.name)
		}
		f.entries = append(f.entries, e)
	}
	if r.Err == nil && len(f.entries) == 0 {
		return f, fault.Corruptf("an index without data files")
	}
	return f, r.Err
}

// readIndexEntry reads a BlockIndex of a data file with the given number of columns.
func readIndexEntry(r *thrift.Reader, columns int) (e indexEntry) {
	r.Fields("BlockIndex", func(id int, typ byte) {
		switch id {
		case entryRows:
			e.rows = r.I64(typ)
		case entryName:
			e.name = r.Text(typ)
		case entryFooter:
			e.footer = r.I64(typ)
		case entryBounds:
			e.bounds = readBlockletIndex(r, typ, columns)
		case entryBlocklet:
			if r.Want(typ, thrift.Struct) {
				b := readBlocklet(r)
				e.blocklet = &b
			}
		case entrySize:
			e.size = r.I64(typ)
		default:
			r.Skip(typ)
		}
	}, entryRows, entryName, entryFooter, entryBounds)
	return e
}

// parseMerged reads the index files in a merged one.
func parseMerged(b []byte) (files []indexFile, err error) {
	r := thrift.Reader{In: b}
	list := func(name string) (n [][]byte) {
		r.Fields(name, func(id int, typ byte) {
			if id != mergedList {
				r.Skip(typ)
				return
			}
			r.List(typ, func(typ byte) { n = append(n, r.Bytes(typ)) })
		}, mergedList)
		return n
	}
	names, contents := list("MergedBlockIndexHeader"), list("MergedBlockIndex")
	if r.Err == nil && (len(names) != len(contents) || r.At != len(b)) {
		r.Fail("%d index files, want %d, up to byte %d", len(contents), len(names), len(b))
	}
	if r.Err != nil {
		return nil, r.Err
	}
	for i, content := range contents {
		f, err := parseIndex(content)
		if err != nil {
			return nil, inside(err, "index file %q", names[i])
		}
		f.name = string(names[i])
		files = append(files, f)
	}
	return files, nil
}

// readIndex reads the index file at path, or all in the merged one there.
func readIndex(path string) (files []indexFile, err error) {
	b, err := readWhole(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.Corruptf("not there")
	case err != nil:
		return nil, err
	case strings.HasSuffix(path, mergeSuffix):
		return parseMerged(b)
	}
	f, err := parseIndex(b)
	return []indexFile{f}, err
}

// indexedFiles returns the data files that the index file at path names, by their paths, and the
// names of the index files in it, if it is a merged one.
func indexedFiles(path string) (files map[string]*indexedFile, merged []string, err error) {
	indexes, err := readIndex(path)
	if err != nil {
		return nil, nil, err
	}
	files = map[string]*indexedFile{}
	for i := range indexes {
		if err := indexes[i].addTo(files, filepath.Dir(path)); err != nil {
			return nil, nil, err
		}
		if name := indexes[i].name; name != "" {
			merged = append(merged, name)
		}
	}
	return files, merged, nil
}

// addTo adds the data files, which are in the folder dir, to files.
func (i *indexFile) addTo(files map[string]*indexedFile, dir string) error {
	for k := range i.entries {
		e := &i.entries[k]
		if !isName(e.name) {
			return fault.Corruptf("data file %q", e.name)
		}
		data := filepath.Join(dir, e.name)
		f := files[data]
		if f == nil {
			f = &indexedFile{indexEntry: *e, header: i.header}
			files[data] = f
		}
		if e.rows != f.rows || e.footer != f.footer || e.size != f.size || (e.blocklet == nil) != (f.blocklet == nil) {
			return fault.Corruptf("two different entries of %q", e.name)
		}
		f.entries = append(f.entries, e)
	}
	return nil
}

// check compares the entries with the data file.
func (i *indexedFile) check(f *File) error {
	if i.footer != f.footer || i.rows != f.rows || i.size != 0 && i.size != f.src.Size() {
		return fault.Corruptf("the index says %d rows, footer at byte %d of %d; want %d rows, at byte %d of %d", i.rows,
			i.footer, i.size, f.rows, f.footer, f.src.Size())
	}
	if i.blocklet == nil { // of an old version
		return nil
	}
	if len(i.entries) != len(f.blocklets) {
		return fault.Corruptf("the index has %d blocklets, want %d", len(i.entries), len(f.blocklets))
	}
	if i.header.columns != f.chunks || i.header.hasSorted && f.hasSorted && i.header.sorted != f.sorted {
		return fault.Corruptf("the index has %d columns, sorted: %v; want %d, %v", i.header.columns,
			i.header.sorted, f.chunks, f.sorted)
	}
	for n, e := range i.entries {
		w := &f.blocklets[n]
		if b := e.blocklet; b != nil &&
			(b.rows != w.rows || b.pages != w.pages || b.dimensions != w.dimensions || b.measures != w.measures ||
				!slices.Equal(b.offsets, w.offsets) || !slices.Equal(b.lengths, w.lengths)) {
			return fault.Corruptf("the index and the footer differ in blocklet %d", n)
		}
		if !e.bounds.equal(&w.bounds) {
			return fault.Corruptf("the index and the footer differ in the minima or maxima of blocklet %d", n)
		}
	}
	return nil
}

// checkIndexes reads the index files and compares them with the data files. Source: carbondata spec
// §10, §17.
func (t *Table) checkIndexes() error {
	files := map[string]*File{} // by path; nil if all its rows are deleted
	for i := range t.files {
		files[t.files[i].path] = t.files[i].File
	}
	for _, path := range t.dropped {
		files[path] = nil
	}
	for _, path := range t.indexes {
		if err := checkIndex(path, files); err != nil {
			return inside(err, "%s", path)
		}
	}
	return nil
}

func checkIndex(path string, files map[string]*File) error {
	indexed, _, err := indexedFiles(path)
	if err != nil {
		return err
	}
	for _, data := range slices.Sorted(maps.Keys(indexed)) {
		i := indexed[data]
		f, ok := files[data]
		if !ok {
			return fault.Corruptf("no data file %q", i.name)
		}
		if f == nil {
			continue
		}
		if err := i.check(f); err != nil {
			return inside(err, "%s", i.name)
		}
	}
	return nil
}

// checkedIndex is checkIndexes for scans with filters, of which only the first reads the files.
// Open has done it in a transactional table.
func (t *Table) checkedIndex() error {
	if t.byID {
		return nil
	}
	t.indexOnce.Do(func() { t.indexErr = t.checkIndexes() })
	return t.indexErr
}
