package carbondata

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
)

// Open opens the data file, the folder of data files, or the transactional table at path, or the
// one transactional table below it. It reads headers and footers, and matches the columns of the
// files by name with the columns of the newest file, or by ID with the columns of the table. The
// caller must close the table.
//
// Errors: ErrCorrupt, ErrUnsupported, errors of package os, and os.ErrNotExist if there are no data
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
		return t.add(path)
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

// match takes the schema of the newest file, unless the table has one, and finds its columns in all
// files.
func (t *Table) match() error {
	if !t.byID {
		newest := slices.MaxFunc(t.files, func(a, b tableFile) int {
			return cmp.Or(cmp.Compare(timestamp(a.name), timestamp(b.name)), strings.Compare(a.name, b.name))
		})
		t.columns = newest.Schema()
	}
	t.missing = make([]any, len(t.columns))
	for i := range t.files {
		if err := t.matchFile(&t.files[i]); err != nil {
			return inside(err, "%s", t.files[i].path)
		}
	}
	return nil
}

// matchFile finds the table's columns in a file: by name, in a transactional table by ID. A file of
// the SDK, which has names as IDs, can be in a segment that was added to the table: then by name
// too.
func (t *Table) matchFile(f *tableFile) error {
	if t.byID {
		if err := uniqueIDs(f.File.columns); err != nil {
			return err
		}
	}
	ids, names := map[string]int{}, map[string]int{}
	for k := range f.File.columns {
		c := &f.File.columns[k]
		ids[c.ID] = k
		if !t.byID || strings.EqualFold(c.ID, c.Name) {
			names[c.Name] = k
		}
	}
	for n := range t.columns {
		c := &t.columns[n]
		k, ok := ids[c.ID]
		if !t.byID || !ok {
			k, ok = names[c.Name]
		}
		if !ok {
			if slices.ContainsFunc(f.partitions, func(name string) bool { return strings.EqualFold(name, c.Name) }) {
				return fault.Unsupportedf("partition column %q is only in the name of the folder", c.Name)
			}
			if t.missing[n] == nil {
				var err error
				if t.missing[n], err = defaultValue(c); err != nil {
					return inside(err, "column %q", c.Name)
				}
			}
			k = -1
		} else if there := &f.File.columns[k]; there.TypeName() != c.TypeName() && !(t.byID && there.widen(c)) {
			return fault.Unsupportedf("column %q is %s, and %s in the file", c.Name,
				c.TypeName(), there.inFile().TypeName())
		}
		f.columns = append(f.columns, k)
	}
	return nil
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
		case e.Type()&^fs.ModeSymlink != 0: // a folder, a pipe
		case strings.HasSuffix(name, deleteSuffix):
			deletes = append(deletes, name)
		case strings.HasSuffix(name, dataSuffix):
			if err := t.add(name); err != nil {
				return false, err
			}
		case strings.HasSuffix(name, indexSuffix), strings.HasSuffix(name, mergeSuffix):
			t.indexes = append(t.indexes, name)
		}
	}
	if len(t.files) == 0 && len(t.indexes) > 0 {
		return false, fault.Corruptf("no data files for %s", t.indexes[0])
	}
	if err := t.addDeletes(deletes); err != nil {
		return false, err
	}
	return len(t.files) > 0, nil
}
