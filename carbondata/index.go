package carbondata

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
//	ID  type    field          meaning
//	1   i64     num_rows       of the data file, not of the blocklet
//	2   binary  file_name      in the folder of the index file
//	3   i64     offset         of the data file's footer
//	4   struct  block_index    minima and maxima; not used yet
//	5   struct  blocklet_info  see BlockletInfo3; absent in old files
//	6   i64     file_size      of the data file; may be absent
//
// A merged index file is a MergedBlockIndexHeader (1: list of names of index files) and a
// MergedBlockIndex (1: list of the bytes of these files).
//
// 100 rows of the file "a" with its footer at byte 899: 16 c8 01  18 01 61  16 86 0e  1c 00  00
const (
	indexVersion = 1 // file format: never change
	indexColumns = 2 // file format: never change
	indexSegment = 3 // file format: never change

	entryRows     = 1 // file format: never change
	entryName     = 2 // file format: never change
	entryFooter   = 3 // file format: never change
	entryBounds   = 4 // file format: never change
	entryBlocklet = 5 // file format: never change
	entrySize     = 6 // file format: never change

	mergedList = 1 // file format: never change
)

// indexEntry is a BlockIndex.
type indexEntry struct {
	rows   int64
	name   string
	footer int64
	size   int64 // 0: not in the entry

	blocklet *blocklet // nil: not in the entry
}

// indexedFile is what the entries of an index file say about one data file.
type indexedFile struct {
	indexEntry             // the first
	blocklets  []*blocklet // of all entries, in their order
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
			case entryBlocklet:
				if r.want(typ, typeStruct) {
					b := r.blocklet()
					e.blocklet = &b
				}
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

// indexedFiles returns the data files that the index file at path names, by their paths.
func indexedFiles(path string) (map[string]*indexedFile, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Corruptf("not there")
	}
	if err != nil {
		return nil, err
	}
	parse := parseIndex
	if strings.HasSuffix(path, mergeSuffix) {
		parse = parseMerged
	}
	entries, err := parse(b)
	if err != nil {
		return nil, err
	}
	files := map[string]*indexedFile{}
	for _, e := range entries {
		if !isName(e.name) {
			return nil, fault.Corruptf("data file %q", e.name)
		}
		data := filepath.Join(filepath.Dir(path), e.name)
		f := files[data]
		if f == nil {
			f = &indexedFile{indexEntry: e}
			files[data] = f
		}
		if e.rows != f.rows || e.footer != f.footer || e.size != f.size || (e.blocklet == nil) != (f.blocklet == nil) {
			return nil, fault.Corruptf("two different entries of %q", e.name)
		}
		if e.blocklet != nil {
			f.blocklets = append(f.blocklets, e.blocklet)
		}
	}
	return files, nil
}

// check compares the entries with the data file.
func (i *indexedFile) check(f *File) error {
	at, err := f.frame()
	if err != nil {
		return err
	}
	if i.footer != at || i.rows != f.rows || i.size != 0 && i.size != f.src.Size() {
		return fault.Corruptf("the index says %d rows, footer at byte %d of %d; want %d rows, at byte %d of %d", i.rows, i.footer, i.size, f.rows, at, f.src.Size())
	}
	if i.blocklet == nil {
		return nil
	}
	if len(i.blocklets) != len(f.blocklets) {
		return fault.Corruptf("the index has %d blocklets, want %d", len(i.blocklets), len(f.blocklets))
	}
	for n, b := range i.blocklets {
		if w := &f.blocklets[n]; b.rows != w.rows || b.pages != w.pages || b.dimensions != w.dimensions || b.measures != w.measures ||
			!slices.Equal(b.offsets, w.offsets) || !slices.Equal(b.lengths, w.lengths) {
			return fault.Corruptf("the index and the footer differ in blocklet %d", n)
		}
	}
	return nil
}

// CheckIndex reads the index files of a folder and compares them with the data files. Open has done
// that in a transactional table. Errors: ErrCorrupt, ErrUnsupported, those of package os. Source:
// carbondata spec §10, §17.
func (t *Table) CheckIndex() error {
	for _, path := range t.indexes {
		if err := t.checkIndex(path); err != nil {
			return fmt.Errorf("carbondata: %s: %w", path, err)
		}
	}
	return nil
}

func (t *Table) checkIndex(path string) error {
	files, err := indexedFiles(path)
	if err != nil {
		return err
	}
	for _, data := range slices.Sorted(maps.Keys(files)) {
		i := slices.IndexFunc(t.files, func(f tableFile) bool { return f.path == data })
		if i < 0 {
			return fault.Corruptf("no data file %q", files[data].name)
		}
		if err := files[data].check(t.files[i].File); err != nil {
			return inside(err, "%s", files[data].name)
		}
	}
	return nil
}
