package tablecmd

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/distinct"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/schemafile"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/schema"
)

// List is the verb "oribi table list".
func List(a *console.Console) *cobra.Command {
	return verb.Printing(a, "list DIR", "List tables", func(_ *cobra.Command, args []string, form output.Format) error {
		return access.WithStore(args[0], access.Reading, func(store *oribi.Store) error {
			tables := store.Tables()
			b := batch.New([]schema.Column{{Name: "table", Type: schema.String}, {Name: "rows", Type: schema.Int64},
				{Name: "rowsets", Type: schema.Int64}, {Name: "bytes", Type: schema.Int64}}, len(tables))
			for i, t := range tables {
				stats, err := t.Stats(false)
				if err != nil {
					return err
				}
				b.Columns[0].SetCell(i, []byte(t.Name()))
				batch.Values[int64](b.Columns[1])[i] = stats.LiveRows
				batch.Values[int64](b.Columns[2])[i] = int64(stats.RowSets)
				batch.Values[int64](b.Columns[3])[i] = stats.Bytes
			}
			return a.PrintBatch(b, form, "bytes")
		})
	})
}

// described is the output of describe for a table.
func described(t *oribi.Table) *schemafile.Table {
	s, p := t.Schema(), t.Properties()
	d := &schemafile.Table{Columns: s.Columns, Keys: s.Keys, History: p.History, Comment: p.Comment,
		ID: p.ID, Name: t.Name(), SchemaVersion: p.SchemaVersion, HistoryFloor: uint64(p.HistoryFloor),
		RowFile: p.RowFile, Expires: expiresOf(p)}
	for _, x := range t.Indexes() {
		d.Indexes = append(d.Indexes, schemafile.Index(x))
	}
	return d
}

func expiresOf(p oribi.Properties) schemafile.Expires {
	return schemafile.Expires{Column: p.Expiry.Column, Age: p.Expiry.Age}
}

// Describe is the verb "oribi table describe".
func Describe(a *console.Console) *cobra.Command {
	var stats bool
	c := verb.Printing(a, "describe DIR NAME",
		"Print a table's schema, in the format that table create reads, or its statistics",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			return access.WithTable(args[0], args[1], access.Reading, func(t *oribi.Table) error {
				switch {
				case stats:
					return printStats(cmd.Context(), a, t, form)
				case form == output.Table:
					return describeTable(a, t)
				case form == output.CSV:
					return a.PrintBatch(columnList(t.Schema(), ""), form)
				}
				_, err := a.Stdout.Write(append(schemafile.Append(nil, described(t)), '\n'))
				return err
			})
		})
	c.Flags().BoolVar(&stats, "stats", false,
		"print column statistics instead: nulls, minimum, maximum, approximate distinct values, and bytes on disk; "+
			"reads all rows")
	return c
}

// describeTable prints a table's description as text: a line about the table, then its columns.
func describeTable(a *console.Console, t *oribi.Table) error {
	stats, err := t.Stats(false)
	if err != nil {
		return err
	}
	p := t.Properties()
	f := console.Fields{}
	f.Add("table", t.Name(), "rows", stats.LiveRows, "rowsets", stats.RowSets)
	f.Plain("on disk", figures.Size(stats.Bytes))
	f.Plain("in memory", figures.Size(stats.MemBytes))
	f.Text("history", when.FormatAge(p.History))
	if p.Expiry.Column != "" {
		f.Text("expires", expiresOf(p).String())
	}
	if p.RowFile == schema.FullRowFile || stats.RowFiles > 0 {
		f.Text("row files", fmt.Sprintf("%s, in %d of %d rowsets", figures.Size(stats.RowFileBytes),
			stats.RowFiles, stats.RowSets))
	}
	if stats.KeyDirectories > 0 {
		f.Text("key directories", fmt.Sprintf("%s, in %d of %d rowsets", figures.Size(stats.KeyDirectoryBytes),
			stats.KeyDirectories, stats.RowSets))
	}
	for _, x := range t.Indexes() {
		kind := "index"
		if x.Unique {
			kind = "unique index"
		}
		f.Text(kind, fmt.Sprintf("%s (%s)", x.Name, strings.Join(x.Columns, ", ")))
	}
	if p.Comment != "" {
		f.Text("comment", p.Comment)
	}
	if err := a.PrintFields(&f, output.Table); err != nil {
		return err
	}
	if err := a.Printf("\n"); err != nil {
		return err
	}
	return a.PrintBatch(columnList(t.Schema(), "-"), output.Table)
}

// columnList prints a row per column of a schema. A column without a default shows nothing, not
// even NULL.
func columnList(s *schema.Schema, none string) *batch.RecordBatch {
	b := batch.New([]schema.Column{{Name: "column", Type: schema.String}, {Name: "type", Type: schema.String},
		{Name: "key", Type: schema.Bool},
		{Name: "nullable", Type: schema.Bool}, {Name: "default", Type: schema.String, Nullable: true},
		{Name: "encoding", Type: schema.String},
		{Name: "compression", Type: schema.String}}, len(s.Columns))
	for i := range s.Columns {
		c := &s.Columns[i]
		b.Columns[0].SetCell(i, []byte(c.Name))
		b.Columns[1].SetCell(i, []byte(c.TypeName()))
		b.Columns[2].SetCell(i, console.CellOf(i < s.Keys))
		b.Columns[3].SetCell(i, console.CellOf(c.Nullable))
		var initial []byte // NULL
		if none != "" {
			initial = []byte(none)
		}
		switch {
		case c.Default != nil:
			initial = celltext.AppendText([]byte{}, c, c.Default)
		case c.Nullable:
			initial = nil
		}
		b.Columns[4].SetCell(i, initial)
		b.Columns[5].SetCell(i, []byte(c.Encoding.FileName()))
		b.Columns[6].SetCell(i, []byte(c.Compression.FileName()))
	}
	return b
}

// printStats prints a row per column: the size of its files, the unencoded size of its live values
// (NULLs count 0), and statistics of the values. Rows that are not flushed have values but do not
// use disk space yet.
func printStats(ctx context.Context, a *console.Console, t *oribi.Table, form output.Format) error {
	s := t.Schema()
	stats, err := t.Stats(true)
	if err != nil {
		return err
	}
	values, err := valuesOf(ctx, t, s)
	if err != nil {
		return err
	}
	advice, err := t.CompressionAdvice(ctx)
	if err != nil {
		return err
	}
	text := celltext.AppendJSON
	if form == output.Table || form == output.CSV {
		text = celltext.AppendText
	}
	groups := []output.Group{
		{Columns: []schema.Column{{Name: "column", Type: schema.String}, {Name: "type", Type: schema.String}}},
		{Columns: []schema.Column{{Name: "nulls", Type: schema.Int64}, {Name: "distinct_approx", Type: schema.Int64}}},
		{Columns: console.Nullable([]schema.Column{{Name: "min", Type: schema.String}, {Name: "max", Type: schema.String}}),
			Raw: form != output.Table},
		{Columns: []schema.Column{{Name: "bytes", Type: schema.Int64}, {Name: "raw_bytes", Type: schema.Int64},
			{Name: "ratio", Type: schema.Double, Nullable: true},
			{Name: "bytes_per_row", Type: schema.Double, Nullable: true}}},
		{Columns: console.Nullable([]schema.Column{{Name: "encoding", Type: schema.String},
			{Name: "compression", Type: schema.String}, {Name: "advice", Type: schema.String}})},
	}
	r := a.Records(form, groups)
	style, shown := a.Style(), output.Flat(groups)
	style.Sizes = []string{"bytes", "raw_bytes"}
	style.Figure = func(row int64, column int) bool {
		t := s.Columns[row].Type
		return (shown[column].Name == "min" || shown[column].Name == "max") && output.Right(t) && t != schema.Timestamp
	}
	r.W.Style(style)
	for i := range stats.Columns {
		c, v := &stats.Columns[i], &values[i]
		var ends [2][]byte
		for k, cell := range [2][]byte{v.least, v.most} {
			if cell != nil {
				ends[k] = text([]byte{}, &s.Columns[i], cell)
			}
		}
		r.Add([][]byte{[]byte(c.Name), []byte(s.Columns[i].TypeName())}, 2)
		r.Add([][]byte{console.Int64Cell(v.nulls), console.Int64Cell(v.distinct.Count())}, 2)
		r.Add(ends[:], 2)
		r.Add([][]byte{console.Int64Cell(c.Bytes), console.Int64Cell(v.bytes), quotient(v.bytes, c.Bytes),
			quotient(c.Bytes, stats.LiveRows)}, 4)
		r.Add([][]byte{joinNames(c.Encodings), joinNames(c.Compressions), adviceText(&advice[i])}, 3)
		if err := r.Write(); err != nil {
			return err
		}
	}
	return r.End(true, nil)
}

// adviceText names the compressions that would take less space, with the share that they save; nil
// for none.
func adviceText(a *oribi.CompressionAdvice) (text []byte) {
	for _, x := range []struct {
		name  schema.Compression
		saves float64
	}{{schema.LZ4HC, a.LZ4HC}, {schema.Dense, a.Dense}} {
		if x.saves <= 0 {
			continue
		}
		if text != nil {
			text = append(text, ", "...)
		}
		text = fmt.Appendf(text, "%s saves %.0f %%", x.name.FileName(), 100*x.saves)
	}
	return text
}

// quotient returns the cell of x / y, NULL if y is 0.
func quotient(x, y int64) []byte {
	if y == 0 {
		return nil
	}
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(console.Rounded(float64(x)/float64(y), 2)))
}

// columnValues are the statistics of a column's live values.
type columnValues struct {
	bytes, nulls int64
	least, most  []byte // nil: there are no values, or the type has no order
	distinct     distinct.Estimator
}

// valuesOf reads the live rows once.
func valuesOf(ctx context.Context, t *oribi.Table, s *schema.Schema) ([]columnValues, error) {
	columns := make([]columnValues, len(s.Columns))
	for b, err := range t.Scan(ctx, oribi.AnyOrder()).Batches() {
		if err != nil {
			return nil, err
		}
		for k, v := range b.Columns {
			for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
				columns[k].add(s.Columns[k].Type, v.Cell(i))
			}
		}
	}
	return columns, nil
}

func (c *columnValues) add(t schema.Type, cell []byte) {
	if cell == nil {
		c.nulls++
		return
	}
	c.bytes += int64(len(cell))
	c.distinct.Add(cell)
	if t == schema.Array || batch.IsNaN(t, cell) {
		return
	}
	if c.least == nil || batch.Compare(t, cell, c.least) < 0 {
		c.least = append(c.least[:0:0], cell...)
		if c.least == nil {
			c.least = []byte{}
		}
	}
	if c.most == nil || batch.Compare(t, cell, c.most) > 0 {
		c.most = append(c.most[:0], cell...)
		if c.most == nil {
			c.most = []byte{}
		}
	}
}

// joinNames joins the names that the files of a column use; nil without files.
func joinNames[T interface{ FileName() string }](list []T) []byte {
	if len(list) == 0 {
		return nil
	}
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = v.FileName()
	}
	return []byte(strings.Join(names, "+"))
}
