package exportcmd

import (
	"context"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carboncmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// Flags are the flags of "table export".
type Flags struct {
	Format  string
	columns []string
	where   []string
	AsOf    string
	limit   int64

	arrow  arrowExportFlags
	carbon carbonExportFlags
}

// Format is a format of "table export".
type Format struct {
	about  string   // what OUT is
	suffix bool     // a name of OUT that ends in the format's name says so
	folder bool     // OUT is a folder
	stdout bool     // OUT may be stdout
	packed bool     // OUT is compressed if its name ends in .gz
	flags  []string // that only this format has
	open   func(e *Job) (exportSink, error)
}

// exportSink makes OUT of the rows of an export.
type exportSink interface {
	// write writes the rows of a scan of the export's scanned columns, and returns how many they
	// are. It calls progress with their number from time to time.
	write(scan *oribi.Scan, progress func(rows int64)) (rows int64, err error)
	// finish completes OUT, durably.
	finish() error
	// abort removes what was written. After finish it does nothing.
	abort()
}

// Job is one run of "table export" or "kv export".
type Job struct {
	Console *console.Console
	Context context.Context
	Flags   *Flags
	Changed func(flag string) bool
	name    string // of the format
	format  *Format
	Out     string
	table   *oribi.Table
	columns []schema.Column // of OUT
	scanned []schema.Column // these, and after them those that a sink needs besides
}

// eachBatch calls use with the batches of a scan, and returns the number of their rows.
func eachBatch(
	scan *oribi.Scan, progress func(rows int64), use func(b *batch.RecordBatch) error,
) (rows int64, err error) {
	for b, err := range scan.Batches() {
		if err == nil {
			err = use(b)
		}
		if err != nil {
			return 0, err
		}
		rows += int64(b.Selected())
		progress(rows)
	}
	return rows, nil
}

// scanKeys adds the key columns to those that are scanned, for errors with the key of a row.
func (e *Job) scanKeys() {
	s := e.table.Schema()
	given := flags.Names(e.columns)
	for _, key := range s.Columns[:s.Keys] {
		if !slices.Contains(given, key.Name) {
			e.scanned = append(slices.Clip(e.scanned), key)
		}
	}
}

// keyOf returns the key of a row as JSON. The key columns are scanned.
func (e *Job) keyOf(b *batch.RecordBatch, row int) string {
	s := e.table.Schema()
	text := []byte{'{'}
	for k := range s.Columns[:s.Keys] {
		c := &s.Columns[k]
		i := slices.IndexFunc(e.scanned, func(o schema.Column) bool { return o.Name == c.Name })
		value := celltext.AppendJSON(nil, c, b.Columns[i].Cell(row))
		if s.SingleKey() {
			return celltext.Printable(string(value))
		}
		if k > 0 {
			text = append(text, ',')
		}
		text = append(append(celltext.AppendQuoted(text, []byte(c.Name)), ':'), value...)
	}
	return celltext.Printable(string(append(text, '}')))
}

// arrowExportFlags are the flags of "table export" that are for Parquet.
type arrowExportFlags struct{ compression string }

// carbonExportFlags are the flags of "table export" that are for CarbonData.
type carbonExportFlags struct {
	form  carboncmd.Form
	round bool
	long  []string
}
