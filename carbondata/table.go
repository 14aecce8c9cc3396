package carbondata

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
)

// Names in a folder. Other files are ignored. Source: carbondata spec §2.3.
//
//	part-<n>-<task>_batchno<b>-<bucket>-<segment>-<timestamp>.<compressor>.carbondata
//	<task>_batchno<b>-<bucket>-<segment>-<timestamp>.carbonindex
//	<segment>_<unique>.carbonindexmerge
//	part-<n>-<task>_batchno<b>-<bucket>-<segment>-<timestamp>.deletedelta
//
// A data file:
// part-0-00000000000bc66340353373c05fb64c_batchno0-0-null-1700000000066.snappy.carbondata
const (
	dataSuffix   = ".carbondata"       // file format: never change
	indexSuffix  = ".carbonindex"      // file format: never change
	mergeSuffix  = ".carbonindexmerge" // file format: never change
	deleteSuffix = ".deletedelta"      // file format: never change

	metadataDir = "Metadata" // of a transactional table; file format: never change
)

// Table reads a transactional table, a folder of data files, or one file. Its methods may be used
// concurrently; Close is the last call.
type Table struct {
	columns []Column // in the user's order
	byID    bool     // columns are matched by ID, not by name
	files   []tableFile
	indexes []string // index files of a folder
}

type tableFile struct {
	*File
	name    string
	path    string
	columns []int // for each of the table's columns the index in columns of File, or -1
	deleted deletedRows
	close   func() error
}

// Open opens the data file, the folder of data files, or the transactional table at path, or the
// one transactional table below it. It reads headers and footers, and matches the columns of the
// files with those of the newest by name, or with those of the table by ID. The caller must close
// the table.
//
// Errors: ErrCorrupt, ErrUnsupported, those of package os, and os.ErrNotExist if there are no data
// files. Source: carbondata spec §2.
func Open(path string) (*Table, error) {
	t := new(Table)
	err := t.open(path)
	if err == nil {
		err = t.match()
	}
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("carbondata: %w", err)
	}
	return t, nil
}

func (t *Table) open(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return inside(t.add(path), "%s", path)
	}
	if isTransactional(path) {
		return inside(t.openTransactional(path), "%s", path)
	}
	found, err := t.addFolder(path)
	if found || err != nil {
		return err
	}
	table, err := findTable(path)
	if err != nil {
		return err
	}
	if table == "" {
		return fmt.Errorf("%s: no files *%s: %w", path, dataSuffix, os.ErrNotExist)
	}
	return inside(t.openTransactional(table), "%s", table)
}

// addFolder adds the data files of a folder, by name. It reports whether the folder has any.
func (t *Table) addFolder(path string) (found bool, err error) {
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return false, err
	}
	var deletes []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		switch {
		case e.IsDir():
		case strings.HasSuffix(name, deleteSuffix):
			deletes = append(deletes, name)
		case strings.HasSuffix(name, dataSuffix):
			if err := t.add(name); err != nil {
				return false, inside(err, "%s", name)
			}
		case strings.HasSuffix(name, indexSuffix), strings.HasSuffix(name, mergeSuffix):
			t.indexes = append(t.indexes, name)
		}
	}
	if len(t.files) == 0 && len(t.indexes) > 0 {
		return false, fault.Corruptf("no data files for %s", t.indexes[0])
	}
	for _, name := range deletes {
		if err := t.addDeletes(name); err != nil {
			return false, inside(err, "%s", name)
		}
	}
	return len(t.files) > 0, nil
}

func (t *Table) add(path string) error {
	src, err := block.OpenFile(path)
	if err != nil {
		return err
	}
	f := &File{src: src}
	if err := f.open(); err != nil {
		src.Close()
		return err
	}
	t.files = append(t.files, tableFile{File: f, name: filepath.Base(path), path: path, close: src.Close})
	return nil
}

// timestamp returns the time in the name of a data file: between the last dash and the next point.
// A name without one is older than all others.
func timestamp(name string) int64 {
	name = name[strings.LastIndexByte(name, '-')+1:]
	digits, _, _ := strings.Cut(name, ".")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// match takes the schema of the newest file, unless the table has one, and finds its columns in all
// files.
func (t *Table) match() error {
	if !t.byID {
		newest := slices.MaxFunc(t.files, func(a, b tableFile) int {
			return cmp.Or(cmp.Compare(timestamp(a.name), timestamp(b.name)), strings.Compare(a.name, b.name))
		})
		t.columns = newest.Schema()
	}
	key := func(c *Column) string {
		if t.byID {
			return c.ID
		}
		return c.Name
	}
	for i := range t.files {
		f := &t.files[i]
		places := map[string]int{}
		for k := range f.File.columns {
			places[key(&f.File.columns[k])] = k
		}
		for n := range t.columns {
			c := &t.columns[n]
			k, ok := places[key(c)]
			if !ok {
				if len(c.Default) > 0 {
					return fault.Unsupportedf("column %q has a default and is not in %s", c.Name, f.path)
				}
				k = -1
			} else if there := f.File.columns[k].TypeName(); there != c.TypeName() {
				return fault.Unsupportedf("column %q is %s, and %s in %s", c.Name, c.TypeName(), there, f.path)
			}
			f.columns = append(f.columns, k)
		}
	}
	return nil
}

// Schema returns the columns in the user's order: those of the schema file of a transactional
// table, else those of the newest file by the timestamp in its name. The caller may change the
// slice, but not the columns' children and defaults.
func (t *Table) Schema() []Column { return slices.Clone(t.columns) }

// Files describes the data files, in the order in which Rows reads them: by name, in a
// transactional table after the order of segments in tablestatus.
func (t *Table) Files() []FileInfo {
	infos := make([]FileInfo, len(t.files))
	for i, f := range t.files {
		infos[i] = f.Info()
		infos[i].Name = f.name
	}
	return infos
}

// Rows returns the rows of all files that are not deleted, in the order of Files, each with the
// values of the columns of Schema; see Type for their Go types. Columns that a file does not have
// are nil. A row belongs to the caller. The first error ends the iteration.
//
// Memory: one page of each column, and headers and dictionaries of one blocklet.
func (t *Table) Rows(ctx context.Context) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for _, f := range t.files {
			more, err := f.rows(ctx, yield)
			if err != nil {
				yield(nil, fmt.Errorf("carbondata: %s: %w", f.path, err))
				return
			}
			if !more {
				return
			}
		}
	}
}

// rows yields the rows of one file.
func (f *tableFile) rows(ctx context.Context, yield func([]any, error) bool) (more bool, err error) {
	var columns []Column
	var places []int // in a row of the table
	for i, k := range f.columns {
		if k >= 0 {
			columns = append(columns, f.File.columns[k])
			places = append(places, i)
		}
	}
	for values, err := range f.rowsOf(ctx, columns, f.deleted) {
		if err != nil {
			return false, err
		}
		row := values
		if len(places) != len(f.columns) {
			row = make([]any, len(f.columns))
			for i, place := range places {
				row[place] = values[i]
			}
		}
		if !yield(row, nil) {
			return false, nil
		}
	}
	return true, nil
}

// Close closes the files.
func (t *Table) Close() error {
	var first error
	for _, f := range t.files {
		if err := f.close(); err != nil && first == nil {
			first = err
		}
	}
	t.files = nil
	return first
}
