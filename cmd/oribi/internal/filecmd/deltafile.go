package filecmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/lines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/loose"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// DeltaDump is the verb "oribi delta dump".
func DeltaDump(a *console.Console) *cobra.Command {
	var columns, kind string
	var annotate bool
	c := verb.Printing(a, "dump FILE", "Print the changes in a delta file, one per line",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			types, err := deltaColumns(columns)
			if err != nil {
				return exit.Usage(fmt.Errorf("--columns: %w", err))
			}
			if kind != "" && kind != "redo" && kind != "undo" {
				return exit.Usage(fmt.Errorf("--type: want redo or undo, not %q", kind))
			}
			if annotate {
				return printAnnotated(cmd.Context(), a, args[0], delta.Dump)
			}
			return loose.With(cmd.Context(), a, args[0], func(src block.Source) error {
				f, err := delta.OpenFile(src, cfile.ReaderOptions{})
				if err != nil {
					return err
				}
				d := deltaPrinter{columns: types}
				if form == output.CSV || form == output.Table {
					d.rows = a.Writer(form, deltaRow)
				} else {
					d.objects = lines.NewPrinter(a.Stdout, schema.Binary, form == output.JSON)
				}
				if d.undo, err = isUndo(cmd.Context(), f, kind, args[0]); err != nil {
					return err
				}
				return d.print(cmd.Context(), f)
			})
		})
	c.Long = c.Short + `.

The file does not record whether its changes are redos or undos. It is inferred from the order of
the changes of one row; if no row has two, from a name that begins with redo or undo. Without either,
deletes of all rows are treated as undos, everything else as redos. --type sets it.`
	c.Flags().StringVar(&columns, "columns", "[]",
		`types of the columns, as [{"id":11,"type":"INT32","nullable":false},…]; values of other columns are printed as "0x…"`)
	c.Flags().StringVar(&kind, "type", "", "redo or undo (default: inferred from the changes and the name)")
	annotateFlag(c, &annotate)
	return c
}

// deltaColumn describes a column that changes set.
type deltaColumn struct {
	column   schema.Column // as printed
	nullable bool
}

// deltaColumns parses the flag --columns.
func deltaColumns(text string) (map[schema.ColumnID]deltaColumn, error) {
	value := jsonin.Trim([]byte(text))
	if err := jsonin.Check(value); err != nil {
		return nil, err
	}
	if value[0] != '[' {
		return nil, fmt.Errorf("want an array, not %s", jsonin.Kind(value))
	}
	columns := map[schema.ColumnID]deltaColumn{}
	for w := jsonin.Walk(value); w.Next(); {
		if w.Value[0] != '{' {
			return nil, fmt.Errorf("want objects, not %s", jsonin.Kind(w.Value))
		}
		id, c, err := readDeltaColumn(w.Value)
		if err != nil {
			return nil, err
		}
		if _, twice := columns[id]; twice {
			return nil, fmt.Errorf("id %d appears twice", id)
		}
		columns[id] = c
	}
	return columns, nil
}

func readDeltaColumn(object []byte) (id schema.ColumnID, c deltaColumn, err error) {
	id, c.nullable = -1, true
	typed, array := false, false
	for w := jsonin.Walk(object); w.Next(); {
		switch string(w.Name) {
		case "id":
			n, err := strconv.ParseInt(string(w.Value), 10, 32)
			if err != nil || n < 0 {
				return 0, c, fmt.Errorf("id: want an integer, not %.40s", w.Value)
			}
			id = schema.ColumnID(n)
		case "type":
			t, known := schema.TypeByName(strings.Trim(string(w.Value), `"`))
			if !known {
				return 0, c, fmt.Errorf("unknown type %.40s", w.Value)
			}
			c.column, typed = lines.Column(t), true
		case "nullable":
			if w.Value[0] != 't' && w.Value[0] != 'f' {
				return 0, c, fmt.Errorf("nullable: want true or false, not %s", jsonin.Kind(w.Value))
			}
			c.nullable = w.Value[0] == 't'
		case "array":
			if w.Value[0] != 't' && w.Value[0] != 'f' {
				return 0, c, fmt.Errorf("array: want true or false, not %s", jsonin.Kind(w.Value))
			}
			array = w.Value[0] == 't'
		}
	}
	if id < 0 || !typed {
		return 0, c, errors.New(`a column needs "id" and "type"`)
	}
	if array {
		c.column.Type, c.column.Element = schema.Array, c.column.Type
	}
	return id, c, nil
}

// errKnown ends a walk once the answer is known.
var errKnown = errors.New("known")

// isUndo reports whether a file contains undos: by the flag; else by the first row that has two
// changes at different times; else by the file's name. If none of these decides, a file that
// deletes every row, from row 0 on, contains undos: a flush of new rows writes it to undo their
// inserts. All other files contain redos.
func isUndo(ctx context.Context, f *delta.File, kind, name string) (undo bool, err error) {
	if kind != "" {
		return kind == "undo", nil
	}
	var last change.Delta
	some := false
	err = f.Changes(nil, func(d change.Delta) error {
		if some && d.Row == last.Row && d.TS != last.TS {
			undo = d.TS < last.TS
			return errKnown
		}
		last, some = d, true
		return ctx.Err()
	})
	if errors.Is(err, errKnown) {
		return undo, nil
	}
	name = filepath.Base(name)
	if strings.HasPrefix(name, "undo") || strings.HasPrefix(name, "redo") {
		return name[0] == 'u', err
	}
	return some && f.Stats().Deletes == f.Len() && f.Len() == int64(last.Row)+1, err
}

// deltaRow are the fields of a change in a table and in CSV; cols is JSON.
var deltaRow = []schema.Column{
	{Name: "row", Type: schema.Int64}, {Name: "ts", Type: schema.Uint64},
	{Name: "type", Type: schema.String}, {Name: "op", Type: schema.String}, {Name: "cols", Type: schema.String},
}

// deltaPrinter prints changes, as rows or as JSON objects.
type deltaPrinter struct {
	columns map[schema.ColumnID]deltaColumn
	undo    bool
	rows    *output.Writer // nil = JSON objects
	objects *lines.Printer
	text    []byte
}

// maxRows is one more than the maximum row ID.
const maxRows = 1 << 32

// print prints all changes of a file, and then checks the rest of it.
func (d *deltaPrinter) print(ctx context.Context, f *delta.File) error {
	b := batch.New(deltaRow, 1)
	err := f.Changes(nil, func(c change.Delta) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return d.change(b, c)
	})
	if err == nil {
		err = f.Verify(nil, maxRows, d.undo)
	}
	if d.rows != nil {
		return console.Ended(err, d.rows)
	}
	return console.Ended(err, d.objects)
}

// change prints one change.
func (d *deltaPrinter) change(b *batch.RecordBatch, c change.Delta) error {
	kind, op := "REDO", strings.ToUpper(c.List.Kind().String())
	if d.undo {
		kind = "UNDO"
	}
	var err error
	if d.rows == nil {
		d.text = fmt.Appendf(d.text[:0], `{"row":%d,"ts":%d,"type":%q,"op":%q,"cols":`, c.Row, uint64(c.TS), kind, op)
		if d.text, err = d.appendColumns(d.text, c); err != nil {
			return err
		}
		d.text = append(d.text, '}')
		return d.objects.Value(d.text)
	}
	if d.text, err = d.appendColumns(d.text[:0], c); err != nil {
		return err
	}
	b.Reset(1)
	batch.Values[int64](b.Columns[0])[0] = int64(c.Row)
	batch.Values[uint64](b.Columns[1])[0] = uint64(c.TS)
	b.Columns[2].SetCell(0, []byte(kind))
	b.Columns[3].SetCell(0, []byte(op))
	b.Columns[4].SetCell(0, d.text)
	return d.rows.Write(b)
}

// appendColumns appends the columns that a change sets as one JSON object, in the order of the
// change.
func (d *deltaPrinter) appendColumns(dst []byte, c change.Delta) ([]byte, error) {
	dst = append(dst, '{')
	columns := c.List.Columns()
	for first := true; ; first = false {
		id, cell, ok := columns.Next()
		if !ok {
			return append(dst, '}'), nil
		}
		if !first {
			dst = append(dst, ',')
		}
		dst = append(strconv.AppendInt(append(dst, '"'), int64(id), 10), `":`...)
		column, known := d.columns[id]
		switch {
		case !known:
			column.column.Type = schema.Binary
		case cell == nil && !column.nullable:
			return nil, fault.Corruptf("row %d: column %d: NULL, but the column is not nullable", c.Row, id)
		case cell != nil && !column.column.Type.Variable() && len(cell) != column.column.Type.Width():
			return nil, fault.Corruptf("row %d: column %d: %d bytes, want %d", c.Row, id,
				len(cell), column.column.Type.Width())
		case cell != nil && column.column.Type == schema.Array:
			if err := schema.CheckArray(column.column.Element, cell); err != nil {
				return nil, fmt.Errorf("row %d: column %d: %w", c.Row, id, err)
			}
		}
		dst = celltext.AppendJSON(dst, &column.column, cell)
	}
}
