package carbondata

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
)

// Deleted rows of a transactional table: JSON, in Metadata/tableupdatestatus-<time>. The first
// segment of tablestatus names the file; others of this name are from earlier or failed updates. It
// is a list with an entry for each data file with deleted rows. All values are text. Source:
// carbondata spec §11.4.
//
//	segmentName                the segment of the data file
//	blockName                  name of the data file up to the segment
//	actualBlockName            name of the data file
//	segmentStatus              "Success"; "Marked for Delete" and "Compacted": all rows are deleted
//	deleteDeltaStartTimestamp  time of the first file of deleted rows, in its name; empty or 0: none
//	deleteDeltaEndTimestamp    of the last
//	deltaFileStamps            of all; absent if first and last are the same. In old tables absent
//	                           too if they are not: then all files between the two times count
//
// Rows deleted once from the first data file of segment 0:
//
//	[{"segmentName":"0","blockName":"part-0-0_batchno0-0-0","segmentStatus":"Success",
//	"deleteDeltaEndTimestamp":"1700000104000","deleteDeltaStartTimestamp":"1700000104000"}]
type blockUpdate struct {
	Segment string   `json:"segmentName"`
	Block   string   `json:"blockName"`
	Actual  string   `json:"actualBlockName"`
	Status  string   `json:"segmentStatus"`
	Start   string   `json:"deleteDeltaStartTimestamp"`
	End     string   `json:"deleteDeltaEndTimestamp"`
	Stamps  []string `json:"deltaFileStamps"`

	start, end int64
}

const updatePrefix = "tableupdatestatus-" // file format: never change

// dropped reports whether all rows of the data file are deleted.
func (u *blockUpdate) dropped() bool {
	return u.Status == "Marked for Delete" || u.Status == "Compacted"
}

// parseUpdates reads a tableupdatestatus.
func parseUpdates(b []byte) (list []blockUpdate, err error) {
	err = eachElement(b, func(u blockUpdate) error {
		if !isName(u.Block) || u.Segment == "" {
			return fault.Corruptf("deleted rows of data file %q in segment %q", u.Block, u.Segment)
		}
		if u.Status != "" && u.Status != "Success" && !u.dropped() {
			return fault.Unsupportedf("deleted rows of data file %q: status %q", u.Block, u.Status)
		}
		for _, stamp := range append([]string{u.Start, u.End}, u.Stamps...) {
			if _, err := strconv.ParseUint(stamp, 10, 63); stamp != "" && err != nil {
				return fault.Corruptf("deleted rows of data file %q: time %q", u.Block, stamp)
			}
		}
		u.start, _ = strconv.ParseInt(u.Start, 10, 64)
		u.end, _ = strconv.ParseInt(u.End, 10, 64)
		list = append(list, u)
		return nil
	})
	return list, err
}

// hasTime reports whether the actual name of the data file has the time of this one: two files of
// an updated segment may differ in nothing else.
func (u *blockUpdate) hasTime(name string) bool {
	at := timestamp(u.Actual)
	return at < 0 || at == timestamp(name)
}

// deltas returns the paths of the files of deleted rows that count, in the folder of the data file.
// list returns the names of all such files in a folder.
func (u *blockUpdate) deltas(dir string, list func(dir string) ([]string, error)) (paths []string, err error) {
	stamps := u.Stamps
	switch {
	case u.start == 0:
		return nil, nil
	case u.Start == u.End:
		stamps = []string{u.Start} // without a look into the folder
	case len(stamps) == 0:
		names, err := list(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if at := timestamp(name); strings.EqualFold(blockName(name), u.Block) && at >= u.start && at <= u.end {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
		if len(paths) == 0 {
			return nil, fault.Corruptf("no files of deleted rows from %s to %s", u.Start, u.End)
		}
		return paths, nil
	}
	for _, stamp := range stamps {
		paths = append(paths, filepath.Join(dir, u.Block+"-"+stamp+deleteSuffix))
	}
	return paths, nil
}

// updates is the content of the table's tableupdatestatus.
type updates struct {
	blocks  map[string][]*blockUpdate // by updateKey
	folders map[string][]string       // names of files of deleted rows; only of folders that were listed
}

// updateKey returns the key of a data file whose name up to the segment is block.
func updateKey(segment, block string) string { return strings.ToLower(segment + "/" + block) }

func newUpdates(list []blockUpdate) *updates {
	m := &updates{map[string][]*blockUpdate{}, map[string][]string{}}
	for i := range list {
		u := &list[i]
		key := updateKey(u.Segment, u.Block)
		m.blocks[key] = append(m.blocks[key], u)
	}
	return m
}

// list returns the names of the files of deleted rows in a folder.
func (m *updates) list(dir string) ([]string, error) {
	if names, ok := m.folders[dir]; ok {
		return names, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), deleteSuffix) {
			names = append(names, e.Name())
		}
	}
	m.folders[dir] = names
	return names, nil
}

// drops reports whether all rows of a data file are deleted.
func (m *updates) drops(segment, name string) bool {
	return slices.ContainsFunc(m.blocks[updateKey(segment, blockName(name))], func(u *blockUpdate) bool {
		return u.dropped() && u.hasTime(name)
	})
}

// apply reads the deleted rows of a data file, each file of them once.
func (m *updates) apply(segment string, f *tableFile) error {
	read := map[string]bool{}
	for _, u := range m.blocks[updateKey(segment, blockName(f.name))] {
		if u.dropped() {
			continue
		}
		paths, err := u.deltas(filepath.Dir(f.path), m.list)
		if err != nil {
			return err
		}
		for _, path := range paths {
			if read[path] {
				continue
			}
			read[path] = true
			err := f.readDeletes(path)
			if errors.Is(err, fs.ErrNotExist) {
				err = fault.Corruptf("tableupdatestatus names it, and it is not there")
			}
			if err != nil {
				return inside(err, "%s", filepath.Base(path))
			}
		}
	}
	return nil
}
