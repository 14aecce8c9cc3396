package carbondata

import (
	"encoding/json"
	"os"
	"path/filepath"
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

// pagePlace is a page of a data file.
type pagePlace struct{ blocklet, page int }

// deletedRows has a bit for each deleted row of a page: bit i%8 of byte i/8.
type deletedRows map[pagePlace][]byte

// has reports whether a row of a page with these bits is deleted.
func (d deletedRows) has(p pagePlace, row int) bool {
	b := d[p]
	return b != nil && b[row/8]&(1<<(row%8)) != 0
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
	if err := json.Unmarshal(b, &file); err != nil {
		return "", fault.Corruptf("JSON: %v", err)
	}
	for key, page := range file.Pages {
		first, second, _ := strings.Cut(key, "_")
		blocklet, err1 := strconv.Atoi(first)
		number, err2 := strconv.Atoi(second)
		if err1 != nil || err2 != nil || blocklet < 0 || blocklet >= len(f.blocklets) || number < 0 || number >= len(f.blocklets[blocklet].pageRows) {
			return "", fault.Corruptf("no page %q", key)
		}
		rows := f.blocklets[blocklet].pageRows[number]
		place := pagePlace{blocklet, number}
		if d[place] == nil {
			d[place] = make([]byte, (rows+7)/8)
		}
		for _, row := range page.Rows {
			if row < 0 || row >= rows {
				return "", fault.Corruptf("page %q: row %d of %d", key, row, rows)
			}
			d[place][row/8] |= 1 << (row % 8)
		}
	}
	return file.Block, nil
}

// addDeletes reads a file of deleted rows for the one data file of its name.
func (t *Table) addDeletes(path string) error {
	name := blockName(filepath.Base(path))
	for i := range t.files {
		f := &t.files[i]
		if blockName(f.name) != name {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if f.deleted == nil {
			f.deleted = deletedRows{}
		}
		block, err := parseDeletes(b, f.File, f.deleted)
		if err == nil && block != name {
			err = fault.Corruptf("deleted rows of %q, want %q", block, name)
		}
		return err
	}
	return fault.Corruptf("no data file %s-*", name)
}
