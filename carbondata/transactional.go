package carbondata

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/fault"
)

// parseSchema returns the columns of a schema file in the user's order.
func parseSchema(b []byte) ([]Column, error) {
	r := thrift.Reader{In: b}
	var flat []flatColumn
	r.Fields("TableInfo", func(id int, typ byte) {
		if id != infoTable || !r.Want(typ, thrift.Struct) {
			r.Skip(typ)
			return
		}
		r.Fields("TableSchema", func(id int, typ byte) {
			if id != tableColumns {
				r.Skip(typ)
				return
			}
			flat = readColumns(&r, typ)
		}, tableColumns)
	}, infoTable)
	if r.Err == nil && (len(flat) == 0 || r.At != len(b)) {
		r.Fail("%d columns in %d bytes", len(flat), len(b))
	}
	if r.Err != nil {
		return nil, r.Err
	}
	columns, _, err := columnTree(flat)
	columns = slices.DeleteFunc(columns, func(c Column) bool { return c.invisible })
	return userOrder(columns), err
}

// isTransactional reports whether path is the folder of a transactional table. It may have lost any
// one of its parts except Metadata: then it is a damaged table, not a folder of data files.
func isTransactional(path string) bool {
	exists := func(name ...string) bool {
		_, err := os.Stat(filepath.Join(append([]string{path}, name...)...))
		return err == nil
	}
	return exists(metadataDir) && (exists(factDir) || exists(metadataDir, schemaName) ||
		exists(metadataDir, statusName))
}

// findTable returns the one transactional table at or below path, or "".
func findTable(path string) (found string, err error) {
	err = filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || !isTransactional(p) {
			return err
		}
		if found != "" {
			return fmt.Errorf("%s: more than one table, %s and %s: name one of them", path, found, p)
		}
		found = p
		return fs.SkipDir
	})
	return found, err
}

// tableStatus reads the list of segments. A table whose status has versions has no file without
// one; the newest has the greatest number, a time in milliseconds.
func tableStatus(dir string) (b []byte, name string, err error) {
	b, err = readWhole(filepath.Join(dir, metadataDir, statusName))
	if !errors.Is(err, fs.ErrNotExist) {
		return b, statusName, err
	}
	entries, err := os.ReadDir(filepath.Join(dir, metadataDir))
	if err != nil {
		return nil, statusName, err
	}
	newest := int64(-1)
	for _, e := range entries {
		version, ok := strings.CutPrefix(e.Name(), statusName+"_")
		if n, err := strconv.ParseInt(version, 10, 64); ok && err == nil && n > newest {
			newest, name = n, e.Name()
		}
	}
	if newest < 0 {
		return nil, statusName, fault.Corruptf("not there")
	}
	b, err = metadata(dir, name)
	return b, name, err
}

// openTransactional adds the files of the table in dir: segments in the order of tablestatus, the
// files of each by name.
func (t *Table) openTransactional(dir string) error {
	b, err := metadata(dir, schemaName)
	if err == nil {
		t.columns, err = parseSchema(b)
	}
	if err == nil {
		err = uniqueIDs(t.columns)
	}
	if err != nil {
		return inside(err, "schema file")
	}
	t.byID = true
	b, name, err := tableStatus(dir)
	updateFile := ""
	if err == nil {
		t.segments, updateFile, err = parseStatus(b)
	}
	if err != nil {
		return inside(err, "%s", name)
	}
	deleted := newUpdates(nil)
	if updateFile != "" {
		if !isName(updateFile) {
			return fault.Corruptf("%s: update status %q", name, updateFile)
		}
		if b, err = metadata(dir, updateFile); err == nil {
			var list []blockUpdate
			list, err = parseUpdates(b)
			deleted = newUpdates(list)
		}
		if err != nil {
			return inside(err, "%s", updateFile)
		}
	}
	known := map[string]string{}
	for i := range t.segments {
		s := &t.segments[i]
		if !s.shown {
			continue
		}
		if err := t.addSegment(dir, s, deleted, known); err != nil {
			return inside(err, "segment %q", s.Name)
		}
	}
	return nil
}
