package carbondata

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
)

// Transactional table: a folder with the directories Metadata and Fact. Source: carbondata spec
// §2.1, §11.
//
//	Metadata/schema                 a TableInfo: 1 fact_table, a TableSchema, of which
//	                                2 table_columns is a list, see ColumnSchema
//	Metadata/tablestatus            JSON: a list of segments, see segmentStatus; if it is not there,
//	                                tablestatus_<number> of the greatest number
//	Metadata/tableupdatestatus-<t>  JSON: deleted rows, see blockUpdate
//	Metadata/segments/<name>        JSON: index files of a segment, see segmentFile
//	Fact/Part0/Segment_<id>/…       index files and the data files that they name
//	<column>=<value>/…              the same, of a table with partitions; the data files have the
//	                                values of the partition columns too
//
// A segment file may name folders elsewhere, of segments that were added to the table.
//
// The schema file of a table with the ID "i" and the STRING "a":
//
//	1c 18 01 69 19 1c 15 00 18 01 61 18 01 61 11 19 05 11 00 00  00
//
// A tablestatus:
//
//	[{"loadStatus":"Success","loadName":"0","segmentFile":"0_1700000100000.segment"}]
//
// Its segment file:
//
//	{"locationMap":{"/Fact/Part0/Segment_0":{"files":["0_batchno0-0-0-1700000100000.carbonindex"],
//	"partitions":[],"status":"Success","isRelative":true}}}
const (
	schemaName    = "schema"      // file format: never change
	statusName    = "tablestatus" // file format: never change
	segmentsDir   = "segments"    // file format: never change
	factDir       = "Fact"        // file format: never change
	partDir       = "Part0"       // file format: never change
	segmentPrefix = "Segment_"    // file format: never change
	columnarName  = "columnar_v3" // file format: never change

	infoTable    = 1 // fact_table; file format: never change
	tableColumns = 2 // file format: never change
)

// parseSchema returns the columns of a schema file in the user's order.
func parseSchema(b []byte) ([]Column, error) {
	r := thriftReader{b: b}
	var flat []flatColumn
	r.fields("TableInfo", func(id int, typ byte) {
		if id != infoTable || !r.want(typ, typeStruct) {
			r.skip(typ)
			return
		}
		r.fields("TableSchema", func(id int, typ byte) {
			if id != tableColumns {
				r.skip(typ)
				return
			}
			flat = r.columns(typ)
		}, tableColumns)
	}, infoTable)
	if r.err == nil && (len(flat) == 0 || r.at != len(b)) {
		r.fail("%d columns in %d bytes", len(flat), len(b))
	}
	if r.err != nil {
		return nil, r.err
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

// readWhole reads a file that is read at once: an index file, deleted rows, or metadata of a table.
// Errors: errors of package os, and ErrCorrupt for a file that is longer than all such files are.
func readWhole(path string) ([]byte, error) {
	src, err := block.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if src.Size() > math.MaxInt32 {
		return nil, fault.Corruptf("%d bytes", src.Size())
	}
	return readAt(src, 0, int(src.Size()))
}

// unmarshal reads a text in JSON into v. Errors: ErrCorrupt.
func unmarshal(text []byte, v any) error {
	err := json.Unmarshal(text, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fault.Corruptf("JSON: byte %d: unexpected %s", wrong.Offset, wrong.Value)
	}
	if err != nil {
		return fault.Corruptf("JSON: %v", err)
	}
	return nil
}

// eachElement calls f with each element of a list in JSON, until f returns an error: elements that
// f refuses take no memory together. Errors: ErrCorrupt, the errors that f returns.
func eachElement[T any](text []byte, f func(element T) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	switch start, err := d.Token(); {
	case err != nil:
		return fault.Corruptf("JSON: %v", err)
	case start != json.Delim('['):
		return fault.Corruptf("JSON: not a list")
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return fault.Corruptf("JSON: %v", err)
		}
		var element T
		if err := unmarshal(raw, &element); err != nil {
			return inside(err, "at byte %d", d.InputOffset())
		}
		if err := f(element); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fault.Corruptf("JSON: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fault.Corruptf("JSON: more text after the list")
	}
	return nil
}

// metadata reads a file of a table's metadata. A missing file is damage: the caller has seen a
// reference to it.
func metadata(dir string, name ...string) ([]byte, error) {
	b, err := readWhole(filepath.Join(append([]string{dir, metadataDir}, name...)...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Corruptf("not there")
	}
	return b, err
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
