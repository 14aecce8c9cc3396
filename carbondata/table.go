package carbondata

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/oribi-db/oribi/batch"
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
	missing []any    // for each column its value in files that do not have it
	files   []tableFile
	indexes []string // paths of index files

	segments []segmentStatus // of a transactional table, with those that are not in it
	dropped  []string        // paths of data files whose rows are all deleted, in a transactional table

	indexOnce sync.Once // of checkedIndex
	indexErr  error
}

type tableFile struct {
	*File
	name    string
	path    string
	columns []int // for each of the table's columns the index in columns of File, or -1
	deleted deletedRows
	close   func() error

	segment    string   // of a transactional table
	partitions []string // columns whose values are in the names of folders
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

// uniqueIDs checks that no two columns have the same ID: one of them would be read as the other.
func uniqueIDs(columns []Column) error {
	names := map[string]string{}
	for i := range columns {
		c := &columns[i]
		if name, ok := names[c.ID]; ok && c.ID != "" && !c.invisible {
			return fault.Corruptf("columns %q and %q have the ID %q", name, c.Name, c.ID)
		}
		if !c.invisible {
			names[c.ID] = c.Name
		}
	}
	return nil
}

// Schema returns the columns in the user's order. A transactional table has them in its schema
// file; otherwise they are the columns of the newest file, by the timestamp in its name. The caller
// may change the slice, but not the columns' children and defaults.
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

// defaultValue returns the value of c in files that do not have the column, nil without a default.
// Source: carbondata spec §4.2; CarbonData's DataTypeUtil writes and RestructureUtil reads it.
//
//	BYTE, SHORT, INT, LONG      decimal text
//	FLOAT, DOUBLE               decimal text; NaN and infinities are null
//	BOOLEAN                     "true" in any case; anything else is false
//	DECIMAL                     scale (1), unscaled: two's complement, big-endian
//	DATE                        decimal text of days since 1970-01-01 and 3fffffff; "1" is null
//	TIMESTAMP                   milliseconds (8, big-endian), sign bit flipped
//	STRING, VARCHAR, BINARY     bytes
//
// A DECIMAL(8,2) with the default 12.35: 02 04 d3
func defaultValue(c *Column) (any, error) {
	b := c.Default
	if b == nil || len(b) == 0 && c.Type != String && c.Type != Varchar {
		return nil, nil
	}
	switch c.Type {
	case String, Varchar, Binary:
		return textValue(c.Type, b), nil
	case Boolean:
		return strings.EqualFold(string(b), "true"), nil
	case Decimal:
		return nestedDecimal(c, b)
	case Timestamp:
		return oldNumber(c, b)
	case Byte, Short, Int, Long:
		v, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			return nil, fault.Corruptf("default: %v", err)
		}
		return integer(c.Type, v)
	case Date:
		v, err := strconv.ParseUint(string(b), 10, 32)
		if err != nil {
			return nil, fault.Corruptf("default: %v", err)
		}
		return date(uint32(v)), nil
	case Float, Double:
		bits := 64
		if c.Type == Float {
			bits = 32
		}
		v, err := strconv.ParseFloat(string(b), bits)
		switch {
		case math.IsInf(v, 0), math.IsNaN(v):
			return nil, nil
		case err != nil:
			return nil, fault.Corruptf("default: %v", err)
		case c.Type == Float:
			return float32(v), nil
		}
		return v, nil
	}
	return nil, fault.Corruptf("%s with a default", c.TypeName())
}

// isName reports whether name is the name of a file, without a directory.
func isName(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != "."
}

// segmentStatus is a segment in tablestatus. Everything in JSON is text.
type segmentStatus struct {
	Name        string `json:"loadName"`
	Merged      string `json:"mergedLoadName"`
	Status      string `json:"loadStatus"`
	File        string `json:"segmentFile"`
	Format      string `json:"fileFormat"`
	Visibility  string `json:"visibility"`
	Updates     string `json:"updateStatusFileName"`
	Path        string `json:"path"`
	Start       string `json:"loadStartTime"`
	UpdateStart string `json:"updateDeltaStartTimestamp"`
	UpdateEnd   string `json:"updateDeltaEndTimestamp"`

	shown bool // its rows are in the table
}

// add adds a data file. Errors name it.
func (t *Table) add(path string) error {
	src, err := block.OpenFile(path)
	if err != nil {
		return err
	}
	f := &File{src: src}
	if err := f.open(); err != nil {
		src.Close()
		return inside(err, "%s", path)
	}
	t.files = append(t.files, tableFile{File: f, name: filepath.Base(path), path: path, close: src.Close})
	return nil
}

// pagePlace is a page of a data file.
type pagePlace struct{ blocklet, page int }

// deletedRows has the deleted rows of pages, in ascending order.
type deletedRows map[pagePlace][]uint16

// remove clears the bits of the deleted rows of a page.
func (d deletedRows) remove(p pagePlace, rows batch.Bitmap) {
	for _, row := range d[p] {
		rows.Clear(int(row))
	}
}
