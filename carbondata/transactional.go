package carbondata

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
)

// Transactional table: a folder with the directories Metadata and Fact. Source: carbondata spec
// §2.1, §11.
//
//	Metadata/schema                 a TableInfo: 1 fact_table, a TableSchema, of which
//	                                2 table_columns is a list, see ColumnSchema
//	Metadata/tablestatus            JSON: a list of segments, see segmentStatus
//	Metadata/segments/<name>        JSON: index files of a segment, see segmentFile
//	Fact/Part0/Segment_<id>/…       index files and the data files that they name
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
	schemaName   = "schema"      // file format: never change
	statusName   = "tablestatus" // file format: never change
	segmentsDir  = "segments"    // file format: never change
	factDir      = "Fact"        // file format: never change
	columnarName = "columnar_v3" // file format: never change

	infoTable    = 1 // fact_table; file format: never change
	tableColumns = 2 // file format: never change
)

// segmentStatus is a segment in tablestatus. Everything in JSON is text.
type segmentStatus struct {
	Name       string `json:"loadName"`
	Status     string `json:"loadStatus"`
	File       string `json:"segmentFile"`
	Format     string `json:"fileFormat"`
	Visibility string `json:"visibility"`
	Updates    string `json:"updateStatusFileName"`
	Path       string `json:"path"`
}

// segmentFile says where a segment is.
type segmentFile struct {
	Locations map[string]struct {
		Files      []string `json:"files"`
		Partitions []string `json:"partitions"`
		Merged     string   `json:"mergeFileName"`
		Relative   bool     `json:"isRelative"`
	} `json:"locationMap"`
}

// visible reports whether the rows of a segment are in the table. Statuses: carbondata spec §11.2.
func (s *segmentStatus) visible() (bool, error) {
	if s.Visibility == "false" {
		return false, nil
	}
	switch s.Status {
	case "Success", "Partial Success", "Marked for Update":
	case "Failure", "Marked for Delete", "Compacted", "Overwrite In Progress", "In Progress", "Update":
		return false, nil
	case "Streaming", "Streaming Finish":
		return false, fault.Unsupportedf("segment %q: streaming", s.Name)
	default:
		return false, fault.Corruptf("segment %q: status %q", s.Name, s.Status)
	}
	switch {
	case s.Format != "" && !strings.EqualFold(s.Format, columnarName):
		return false, fault.Unsupportedf("segment %q: format %q", s.Name, s.Format)
	case s.Path != "":
		return false, fault.Unsupportedf("segment %q: files outside of the table", s.Name)
	case s.Updates != "":
		return false, fault.Unsupportedf("segment %q: deleted rows of a transactional table", s.Name)
	case s.File == "":
		return false, fault.Unsupportedf("segment %q: no segment file", s.Name)
	}
	return true, nil
}

// parseStatus returns the visible segments of a tablestatus.
func parseStatus(b []byte) (visible []segmentStatus, err error) {
	var all []segmentStatus
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fault.Corruptf("JSON: %v", err)
	}
	for _, s := range all {
		ok, err := s.visible()
		if err != nil {
			return nil, err
		}
		if ok {
			visible = append(visible, s)
		}
	}
	return visible, nil
}

// parseSegment returns the paths of the index files of a segment, in the table's folder.
func parseSegment(b []byte) (paths []string, err error) {
	var s segmentFile
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fault.Corruptf("JSON: %v", err)
	}
	for _, folder := range slices.Sorted(maps.Keys(s.Locations)) {
		at := s.Locations[folder]
		dir := strings.TrimLeft(folder, "/")
		switch {
		case !at.Relative:
			return nil, fault.Unsupportedf("files outside of the table, in %q", folder)
		case len(at.Partitions) > 0:
			return nil, fault.Unsupportedf("partitions")
		case !filepath.IsLocal(dir):
			return nil, fault.Corruptf("folder %q", folder)
		}
		names := at.Files
		if at.Merged != "" {
			names = []string{at.Merged}
		}
		if len(names) == 0 {
			return nil, fault.Corruptf("no index file in %q", folder)
		}
		for _, name := range names {
			if !isName(name) {
				return nil, fault.Corruptf("index file %q", name)
			}
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths, nil
}

// isName reports whether name is that of a file, without a directory.
func isName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != "."
}

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
			r.list(typ, func(typ byte) {
				if r.want(typ, typeStruct) {
					flat = append(flat, r.column())
				}
			})
		}, tableColumns)
	}, infoTable)
	if r.err == nil && (len(flat) == 0 || r.at != len(b)) {
		r.fail("%d columns in %d bytes", len(flat), len(b))
	}
	if r.err != nil {
		return nil, r.err
	}
	columns, _, err := columnTree(flat)
	return userOrder(columns), err
}

// isTransactional reports whether path is the folder of a transactional table. It may have lost any
// one of its parts except Metadata: then it is a damaged table, not a folder of data files.
func isTransactional(path string) bool {
	exists := func(name ...string) bool {
		_, err := os.Stat(filepath.Join(append([]string{path}, name...)...))
		return err == nil
	}
	return exists(metadataDir) && (exists(factDir) || exists(metadataDir, schemaName) || exists(metadataDir, statusName))
}

// findTable returns the one transactional table at or below path, or "" if there is none.
func findTable(path string) (found string, err error) {
	err = filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || !isTransactional(p) {
			return err
		}
		if found != "" {
			return fault.Unsupportedf("more than one table: %s and %s; name one of them", found, p)
		}
		found = p
		return fs.SkipDir
	})
	return found, err
}

// metadata reads a file of a table's metadata. One that is not there is damage.
func metadata(dir string, name ...string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(append([]string{dir, metadataDir}, name...)...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Corruptf("not there")
	}
	return b, err
}

// openTransactional adds the files of the table in dir: segments in the order of tablestatus, the
// files of each by name.
func (t *Table) openTransactional(dir string) error {
	b, err := metadata(dir, schemaName)
	if err == nil {
		t.columns, err = parseSchema(b)
	}
	if err != nil {
		return inside(err, "schema file")
	}
	t.byID = true
	var segments []segmentStatus
	if b, err = metadata(dir, statusName); err == nil {
		segments, err = parseStatus(b)
	}
	if err != nil {
		if versions, _ := filepath.Glob(filepath.Join(dir, metadataDir, statusName+"_*")); len(versions) > 0 {
			return fault.Unsupportedf("a tablestatus with versions, such as %s", filepath.Base(versions[0]))
		}
		return inside(err, "tablestatus")
	}
	for _, s := range segments {
		if err := t.addSegment(dir, s); err != nil {
			return inside(err, "segment %q", s.Name)
		}
	}
	return nil
}

func (t *Table) addSegment(dir string, s segmentStatus) error {
	if !isName(s.File) {
		return fault.Corruptf("segment file %q", s.File)
	}
	var indexes []string
	b, err := metadata(dir, segmentsDir, s.File)
	if err == nil {
		indexes, err = parseSegment(b)
	}
	if err != nil {
		return inside(err, "%s", s.File)
	}
	files := map[string]*indexedFile{} // by path
	for _, path := range indexes {
		path = filepath.Join(dir, path)
		more, err := indexedFiles(path)
		if err != nil {
			return inside(err, "%s", path)
		}
		for data, f := range more {
			if files[data] != nil {
				return fault.Corruptf("%s: another index file names %q too", path, f.name)
			}
			files[data] = f
		}
	}
	for _, path := range slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		if c := strings.Compare(filepath.Base(a), filepath.Base(b)); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	}) {
		err := t.add(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = fault.Corruptf("an index file names it, and it is not there")
		}
		if err == nil {
			err = files[path].check(t.files[len(t.files)-1].File)
		}
		if err != nil {
			return inside(err, "%s", path)
		}
	}
	return nil
}
