package carbondata

import (
	"fmt"
	"maps"

	"github.com/oribi-db/oribi/block"
)

// File reads one data file. It is safe for concurrent use if its source is.
type File struct {
	src        block.Source
	columns    []Column // in the order of the file
	chunks     int      // columns with all their children
	dimensions int      // how many of the chunks are dimensions
	rows       int64
	blocklets  []blocklet
	sorted     bool
	hasSorted  bool // the footer says whether it is sorted
	extra      map[string]string
	segment    segmentInfo
	headerEnd  int64
	footer     int64
	strict     bool // pages of Snappy are checked for copies from offset 0
}

// FileInfo describes a data file.
type FileInfo struct {
	Name      string // without its directory; empty if File does not know it
	Rows      int64
	Blocklets int
	Sorted    bool   // the rows are sorted by the sort columns
	Writer    string // version of the writer; empty before SDK 1.6

	Properties map[string]string // entries of the footer, the writer's version among them
}

// OpenFile reads header and footer of the data file in src. Errors: ErrCorrupt, ErrUnsupported,
// errors of src. Source: carbondata spec §3.
func OpenFile(src block.Source) (*File, error) {
	f := &File{src: src}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("carbondata: %w", err)
	}
	return f, nil
}

func (f *File) open() error {
	footer, err := f.frame()
	if err != nil {
		return err
	}
	end, err := f.readHeader(footer)
	if err != nil {
		return inside(err, "header")
	}
	f.headerEnd, f.footer = end, footer
	return inside(f.readFooter(end, footer, f.src.Size()-pointerLen), "footer at byte %d", footer)
}

// inside adds a place to an error.
func inside(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// Schema returns the columns in the user's order. The caller may change the slice, but not the
// columns' children and defaults.
func (f *File) Schema() []Column { return userOrder(f.columns) }

// Info returns what the footer says about the file.
func (f *File) Info() FileInfo {
	return FileInfo{Rows: f.rows, Blocklets: len(f.blocklets), Sorted: f.sorted, Writer: f.extra["version"],
		Properties: maps.Clone(f.extra)}
}
