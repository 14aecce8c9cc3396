package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/figures"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/schemafile"
	"github.com/oribi-db/oribi/cmd/oribi/internal/when"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

func (a *app) tableList() *cobra.Command {
	var format string
	c := a.verb("list DIR", "List tables", func(_ *cobra.Command, args []string) error {
		form, err := a.format(format)
		if err != nil {
			return err
		}
		return withStore(args[0], reading, func(store *oribi.Store) error {
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
			return a.printBatch(b, form, "bytes")
		})
	})
	formatFlag(c, &format)
	return c
}

// described is what describe tells of a table.
func described(t *oribi.Table) *schemafile.Table {
	s, p := t.Schema(), t.Properties()
	return &schemafile.Table{Columns: s.Columns, Keys: s.Keys, History: p.History, Comment: p.Comment,
		ID: p.ID, Name: t.Name(), SchemaVersion: p.SchemaVersion, HistoryFloor: uint64(p.HistoryFloor)}
}

func (a *app) tableDescribe() *cobra.Command {
	var format string
	var stats bool
	c := a.verb("describe DIR NAME", "Print a table's schema as table create takes it, or its columns' sizes", func(cmd *cobra.Command, args []string) error {
		form, err := a.format(format)
		if err != nil {
			return err
		}
		return withTable(args[0], args[1], reading, func(t *oribi.Table) error {
			switch {
			case stats:
				b, err := columnStats(cmd.Context(), t)
				if err != nil {
					return err
				}
				return a.printBatch(b, form, "bytes", "raw_bytes")
			case form == output.Table:
				return a.describeTable(t)
			case form == output.CSV:
				return a.printBatch(columnList(t.Schema()), form)
			}
			_, err := a.stdout.Write(append(schemafile.Append(nil, described(t)), '\n'))
			return err
		})
	})
	formatFlag(c, &format)
	c.Flags().BoolVar(&stats, "stats", false, "print what each column takes on disk instead: reads the live rows once")
	return c
}

// describeTable tells people of a table: a line on the whole, then its columns.
func (a *app) describeTable(t *oribi.Table) error {
	stats, err := t.Stats(false)
	if err != nil {
		return err
	}
	p := t.Properties()
	f := fields{}
	f.text("table", t.Name())
	f.text("rows", figures.Thousands(stats.LiveRows))
	f.text("rowsets", figures.Thousands(int64(stats.RowSets)))
	f.text("on disk", figures.Size(stats.Bytes))
	f.text("in memory", figures.Size(stats.MemBytes))
	f.text("history", when.FormatAge(p.History))
	if p.Comment != "" {
		f.text("comment", p.Comment)
	}
	if err := a.printFields(&f, output.Table); err != nil {
		return err
	}
	if err := a.printf("\n"); err != nil {
		return err
	}
	return a.printBatch(columnList(t.Schema()), output.Table)
}

// columnList is a row a column of a schema.
func columnList(s *schema.Schema) *batch.RecordBatch {
	b := batch.New([]schema.Column{{Name: "column", Type: schema.String}, {Name: "type", Type: schema.String}, {Name: "key", Type: schema.Bool},
		{Name: "nullable", Type: schema.Bool}, {Name: "default", Type: schema.String, Nullable: true}, {Name: "encoding", Type: schema.String},
		{Name: "compression", Type: schema.String}}, len(s.Columns))
	for i := range s.Columns {
		c := &s.Columns[i]
		b.Columns[0].SetCell(i, []byte(c.Name))
		b.Columns[1].SetCell(i, []byte(c.TypeName()))
		b.Columns[2].SetCell(i, cellOf(i < s.Keys))
		b.Columns[3].SetCell(i, cellOf(c.Nullable))
		var initial []byte
		if c.Default != nil {
			initial = celltext.AppendText([]byte{}, c, c.Default)
		}
		b.Columns[4].SetCell(i, initial)
		b.Columns[5].SetCell(i, []byte(schemafile.EncodingName(c.Encoding)))
		b.Columns[6].SetCell(i, []byte(schemafile.CompressionName(c.Compression)))
	}
	return b
}

func cellOf(b bool) []byte {
	if b {
		return []byte{1}
	}
	return []byte{0}
}

// columnStats is a row a column: what its files take, and what its live values would take as they
// are, NULLs nothing. Rows that are not flushed have values but take nothing on disk yet.
func columnStats(ctx context.Context, t *oribi.Table) (*batch.RecordBatch, error) {
	s := t.Schema()
	stats, err := t.Stats(true)
	if err != nil {
		return nil, err
	}
	raw, err := rawBytes(ctx, t, s)
	if err != nil {
		return nil, err
	}
	b := batch.New([]schema.Column{{Name: "column", Type: schema.String}, {Name: "type", Type: schema.String},
		{Name: "encoding", Type: schema.String, Nullable: true}, {Name: "compression", Type: schema.String, Nullable: true},
		{Name: "bytes", Type: schema.Int64}, {Name: "raw_bytes", Type: schema.Int64},
		{Name: "ratio", Type: schema.Double, Nullable: true}, {Name: "bytes_per_row", Type: schema.Double, Nullable: true}}, len(s.Columns))
	for i := range stats.Columns {
		c := &stats.Columns[i]
		b.Columns[0].SetCell(i, []byte(c.Name))
		b.Columns[1].SetCell(i, []byte(s.Columns[i].TypeName()))
		b.Columns[2].SetCell(i, joinNames(c.Encodings, schemafile.EncodingName))
		b.Columns[3].SetCell(i, joinNames(c.Compressions, schemafile.CompressionName))
		batch.Values[int64](b.Columns[4])[i] = c.Bytes
		batch.Values[int64](b.Columns[5])[i] = raw[i]
		setQuotient(b.Columns[6], i, raw[i], c.Bytes)
		setQuotient(b.Columns[7], i, c.Bytes, stats.LiveRows)
	}
	return b, nil
}

// joinNames names the forms of a column's files; nil without files.
func joinNames[T any](list []T, name func(T) string) []byte {
	if len(list) == 0 {
		return nil
	}
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = name(v)
	}
	return []byte(strings.Join(names, "+"))
}

// setQuotient sets a cell to x / y, NULL where there is none.
func setQuotient(v *batch.Vector, i int, x, y int64) {
	if y == 0 {
		v.SetCell(i, nil)
		return
	}
	batch.Values[float64](v)[i] = rounded(float64(x)/float64(y), 2)
}

// rawBytes is, for each column, the bytes of the values of the live rows.
func rawBytes(ctx context.Context, t *oribi.Table, s *schema.Schema) ([]int64, error) {
	sizes := make([]int64, len(s.Columns))
	for b, err := range t.Scan(ctx, oribi.AnyOrder()).Batches() {
		if err != nil {
			return nil, err
		}
		for k, v := range b.Columns {
			for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
				sizes[k] += int64(len(v.Cell(i)))
			}
		}
	}
	return sizes, nil
}
