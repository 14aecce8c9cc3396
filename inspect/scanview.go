package inspect

import (
	"fmt"
	"html/template"

	"github.com/oribi-db/oribi"
)

// scanView is what a page of rows read in its state: the sum of the explanations of its scans.
type scanView struct {
	Ranges   int   `json:"ranges"`           // key ranges that were read one after another
	RowSets  int   `json:"rowsets"`          // of the table, on disk
	Read     int   `json:"rowsets_read"`     // of them; with several ranges, each counts in each
	Rows     int64 `json:"rows"`             // of the table, on disk
	Looked   int64 `json:"rows_read"`        // of them, those in the ranges
	Memory   int64 `json:"rows_in_memory"`   // read in memory
	Excluded int64 `json:"rows_excluded"`    // of those that were read, by "where"
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
	ranges := ""
	if v.Ranges > 1 {
		ranges = fmt.Sprintf(" in %s key ranges, one after another", countHTML(v.Ranges))
	}
	add("Rowsets: %s of %s were read%s.", countHTML(v.Read), countHTML(v.RowSets), ranges)
	add("Rows: %s of %s on disk and %s in memory were in reach of the scan; the expression excluded %s.", countHTML(v.Looked), countHTML(v.Rows), countHTML(v.Memory), countHTML(v.Excluded))
	add("Column files: %s of %s cblocks were read. Zone maps decided %s without a read, and %s had no row that was asked for.", countHTML(v.Decoded), countHTML(v.Cblocks), countHTML(v.ZoneMap), countHTML(v.Skipped))
	return list
}
