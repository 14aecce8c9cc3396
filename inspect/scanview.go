package inspect

import (
	"fmt"
	"html/template"

	"github.com/oribi-db/oribi"
)

// scanView counts the reads for a page of rows in its state: the sum of the explanations of its
// scans.
type scanView struct {
	Ranges   int   `json:"ranges"`           // key ranges that were read one after another
	RowSets  int   `json:"rowsets"`          // of the table, on disk
	Read     int   `json:"rowsets_read"`     // of them; with several ranges, each counts in each
	Rows     int64 `json:"rows"`             // of the table, on disk
	Looked   int64 `json:"rows_read"`        // of them, those in the ranges
	Memory   int64 `json:"rows_in_memory"`   // read in memory
	Excluded int64 `json:"rows_excluded"`    // of those that were read, by "where"
	Left     int64 `json:"rows_left"`        // of those that were read: they match, and are for the next page
	Cblocks  int64 `json:"cblocks"`          // of the columns, in the rowsets that were read
	Decoded  int64 `json:"cblocks_read"`     // of these, read
	ZoneMap  int64 `json:"cblocks_zone_map"` // of these, decided by their zone map
	Skipped  int64 `json:"cblocks_skipped"`  // of these, not needed
}

func (v *scanView) add(e *oribi.Explanation) {
	v.Ranges++
	v.RowSets, v.Rows = e.RowSets.Disk, e.Rows.Disk
	v.Read += e.RowSets.Read
	v.Looked += e.Rows.Disk - e.Rows.Outside - e.Rows.NotReached
	v.Memory += e.Rows.Memory
	v.Excluded += e.Rows.Excluded
	v.Left += e.Rows.NotReturned
	for _, c := range e.Columns {
		v.Cblocks += c.Blocks
		v.Decoded += c.Stored + c.Decoded
		v.ZoneMap += c.ZoneMap
		v.Skipped += c.Outside + c.Skipped
	}
}

// Lines says it in sentences.
func (v *scanView) Lines() (list []template.HTML) {
	add := func(format string, args ...any) { list = append(list, template.HTML(fmt.Sprintf(format, args...))) }
	if v.Ranges > 1 {
		add("The key space was read in %s ranges, one after another, until the page was full or time was up. What "+
			"overlaps several ranges counts in each.", countHTML(v.Ranges))
		add("Rowsets: %s were read. The table has %s on disk.", countHTML(v.Read), countHTML(v.RowSets))
	} else {
		add("Rowsets: %s of %s on disk were read.", countHTML(v.Read), countHTML(v.RowSets))
	}
	add("Rows: of %s on disk, %s were in reach of the scan, and %s in memory. The expression excluded %s. %s match "+
		"and are left for the next page.", countHTML(v.Rows), countHTML(v.Looked), countHTML(v.Memory),
		countHTML(v.Excluded), countHTML(v.Left))
	add("Column files of these rowsets have %s cblocks: %s were read, zone maps decided %s without a read, and %s "+
		"had no row that was asked for.", countHTML(v.Cblocks), countHTML(v.Decoded),
		countHTML(v.ZoneMap), countHTML(v.Skipped))
	return list
}
