package console

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"strconv"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/lines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// Objects prints JSON objects: one a line, or as one array. As a table and as CSV it prints their
// fields as columns.
type Objects struct {
	JSON    *lines.Printer // nil: rows
	columns []schema.Column
	rows    *output.Writer
	batch   *batch.RecordBatch
}

// Objects returns a printer of objects that have fields of these names. Columns are of type string
// or int64; a field that an object lacks is NULL.
func (a *Console) Objects(form output.Format, columns []schema.Column) *Objects {
	if form == output.JSON || form == output.JSONL {
		return &Objects{JSON: lines.NewPrinter(a.Stdout, schema.Binary, form == output.JSON)}
	}
	return &Objects{columns: columns, rows: a.Writer(form, columns), batch: batch.New(columns, 1)}
}

// Print prints one object.
func (o *Objects) Print(object []byte) error {
	if o.JSON != nil {
		return o.JSON.Value(object)
	}
	o.batch.Reset(1)
	for i := range o.columns {
		o.batch.Columns[i].SetCell(0, nil)
	}
	for w := jsonin.Walk(object); w.Next(); {
		for i := range o.columns {
			if o.columns[i].Name == string(w.Name) {
				cell, err := textCell(&o.columns[i], w.Value)
				if err != nil {
					return err
				}
				o.batch.Columns[i].SetCell(0, cell)
			}
		}
	}
	return o.rows.Write(o.batch)
}

// textCell returns the cell for a JSON value: strings without their quotes, all else as it is.
func textCell(c *schema.Column, value []byte) ([]byte, error) {
	switch {
	case jsonin.IsNull(value):
		return nil, nil
	case c.Type == schema.Int64:
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		return binary.LittleEndian.AppendUint64(nil, uint64(n)), nil
	case value[0] == '"':
		return jsonin.AppendString([]byte{}, value), nil
	}
	return value, nil
}

// Flush prints what is complete.
func (o *Objects) Flush() error {
	if o.JSON != nil {
		return o.JSON.Flush()
	}
	return o.rows.Flush()
}

// Close ends the output.
func (o *Objects) Close() error {
	if o.JSON != nil {
		return o.JSON.Close()
	}
	return o.rows.Close()
}

// checkEvery is how many entries are printed between two checks for Ctrl-C.
const checkEvery = 1024

// PrintEntries prints entries, at most limit unless that is 0, as objects that appendEntry appends.
func PrintEntries[E any](
	ctx context.Context, p *Objects, entries iter.Seq2[E, error], limit int64,
	appendEntry func(line []byte, e *E) ([]byte, error),
) error {
	var line []byte
	n := int64(0)
	for e, err := range entries {
		if err != nil {
			return err
		}
		if line, err = appendEntry(line[:0], &e); err != nil {
			return err
		}
		if err := p.Print(line); err != nil {
			return err
		}
		if n++; n == limit {
			return nil
		}
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// TextColumns returns nullable columns of type string, except that those in numbers are integers.
func TextColumns(numbers []string, names ...string) []schema.Column {
	columns := make([]schema.Column, len(names))
	for i, name := range names {
		columns[i] = schema.Column{Name: name, Type: schema.String, Nullable: true}
		for _, number := range numbers {
			if name == number {
				columns[i].Type = schema.Int64
			}
		}
	}
	return columns
}

// Ended ends the output. After an error it prints what was read before, and returns that error.
func Ended(err error, out interface {
	Flush() error
	Close() error
}) error {
	if err != nil {
		out.Flush()
		return err
	}
	return out.Close()
}
