package carbondata

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
)

// Deleted rows of one data file: JSON, in a file that is named as the data file, up to the segment,
// then a dash and the time of the delete. A data file may have several. Source: carbondata spec
// §11.4.
//
//	blockletDetailsMap  by "<blocklet>_<page>":
//	    deletedRows     rows in the page, from 0
//	blockName           name of the data file up to the segment
//
// Row 27 of page 1 in blocklet 0:
//
//	{"blockletDetailsMap":{"0_1":{"id":"0","pageId":1,"deletedRows":[27]}},"blockName":"part-0-1_batchno0-0-null"}
type deleteFile struct {
	Pages map[string]struct {
		Rows []int `json:"deletedRows"`
	} `json:"blockletDetailsMap"`
	Block string `json:"blockName"`
}

// blockName returns the name of a data file or of a file of deleted rows up to the segment.
func blockName(name string) string {
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		return name[:i]
	}
	return name
}

// parseDeletes adds the rows in b, a file of deleted rows of f, to d. It returns the name of the
// data file.
func parseDeletes(b []byte, f *File, d deletedRows) (block string, err error) {
	var file deleteFile
	if err := unmarshal(b, &file); err != nil {
		return "", err
	}
	changed := map[pagePlace]bool{} // two keys may be of the same page
	for _, key := range slices.Sorted(maps.Keys(file.Pages)) {
		first, second, _ := strings.Cut(key, "_")
		blocklet, err1 := strconv.Atoi(first)
		number, err2 := strconv.Atoi(second)
		if err1 != nil || err2 != nil || blocklet < 0 || blocklet >= len(f.blocklets) || number < 0 ||
			number >= len(f.blocklets[blocklet].pageRows) {
			return "", fault.Corruptf("no page %q", key)
		}
		rows := f.blocklets[blocklet].pageRows[number]
		place := pagePlace{blocklet, number}
		for _, row := range file.Pages[key].Rows {
			if row < 0 || row >= rows {
				return "", fault.Corruptf("page %q: row %d of %d", key, row, rows)
			}
			d[place] = append(d[place], uint16(row))
		}
		changed[place] = true
	}
	for place := range changed {
		slices.Sort(d[place])
		d[place] = slices.Compact(d[place])
	}
	return file.Block, nil
}

// readDeletes adds the rows in a file of deleted rows of f.
func (f *tableFile) readDeletes(path string) error {
	b, err := readWhole(path)
	if err != nil {
		return err
	}
	if f.deleted == nil {
		f.deleted = deletedRows{}
	}
	block, err := parseDeletes(b, f.File, f.deleted)
	if want := blockName(filepath.Base(path)); err == nil && block != want {
		err = fault.Corruptf("deleted rows of %q, want %q", block, want)
	}
	return err
}

// addDeletes reads files of deleted rows, each for the data file of its name.
func (t *Table) addDeletes(paths []string) error {
	files := map[string]*tableFile{}
	for i := range t.files {
		f := &t.files[i]
		if name := blockName(f.name); files[name] == nil {
			files[name] = f
		}
	}
	for _, path := range paths {
		name := blockName(filepath.Base(path))
		err := fault.Corruptf("no data file %s-*", name)
		if f := files[name]; f != nil {
			err = f.readDeletes(path)
		}
		if err != nil {
			return inside(err, "%s", path)
		}
	}
	return nil
}
