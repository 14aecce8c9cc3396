package apply

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// Target is a table that lines may name, with its schema.
type Target struct {
	Table  *oribi.Table
	Schema *schema.Schema
}

// Operation is one operation of a line: cells in schema order, nil for NULL; Set reports which of
// them were given. Operands has the operands that were given instead, or is nil. It is valid
// until the next operation.
type Operation struct {
	Kind     oribi.Op
	Target   *Target
	Cells    [][]byte
	Set      []bool
	Operands []*oribi.Operand
}

// Decoder parses lines into operations. It checks their form and the types of their values. The
// store checks whether rows exist and whether missing values have defaults.
type Decoder struct {
	Tables func(name string) (*Target, error)

	checker jsonin.Checker
	bytes   []byte // the operation's cells
	cells   [][]byte
	set     []bool
	last    *Target // of the last operation: most lines name one table
	name    string  // of last
}

var kinds = map[string]oribi.Op{
	"insert": oribi.OpInsert, "insert_ignore": oribi.OpInsertIgnore,
	"upsert": oribi.OpUpsert, "upsert_ignore": oribi.OpUpsertIgnore,
	"update": oribi.OpUpdate, "update_ignore": oribi.OpUpdateIgnore,
	"delete": oribi.OpDelete, "delete_ignore": oribi.OpDeleteIgnore,
}

func deletes(k oribi.Op) bool { return k == oribi.OpDelete || k == oribi.OpDeleteIgnore }

// opError prefixes an error with the number of the operation, counted from 1.
func opError(index int, err error) error { return fmt.Errorf("op %d: %w", index+1, err) }

// Decode calls use with the operations of a line, in order. Errors name the operation and the
// column.
func (d *Decoder) Decode(line []byte, use func(*Operation) error) error {
	line = jsonin.Trim(line)
	if err := d.checker.Check(line); err != nil {
		return checkError(err)
	}
	if line[0] != '{' {
		return fmt.Errorf("want an object, not %s", jsonin.Kind(line))
	}
	var ops []byte
	for w := jsonin.Walk(line); w.Next(); {
		if string(w.Name) != "ops" {
			return fmt.Errorf("unknown field %q", w.Name)
		}
		ops = w.Value
	}
	switch {
	case ops == nil:
		return errors.New(`"ops" is missing`)
	case ops[0] != '[':
		return fmt.Errorf("ops: want an array, not %s", jsonin.Kind(ops))
	}
	if d.bytes == nil {
		d.bytes = make([]byte, 0, 4<<10) // never nil: an empty cell is not NULL
	}
	i := 0
	for w := jsonin.Walk(ops); w.Next(); i++ {
		op, err := d.operation(w.Value)
		if err == nil {
			err = use(&op)
		}
		if err != nil {
			return opError(i, err)
		}
	}
	return nil
}

// Row parses one row: the JSON object of its columns or, for a delete, of its key. Errors name the
// column.
func (d *Decoder) Row(kind oribi.Op, t *Target, object []byte) (Operation, error) {
	op := Operation{Kind: kind, Target: t}
	object = jsonin.Trim(object)
	if err := d.checker.Check(object); err != nil {
		if e, ok := errors.AsType[*jsonin.Error](err); ok {
			err = e.InColumn()
		}
		return op, err
	}
	if object[0] != '{' {
		return op, fmt.Errorf("want an object of columns, not %s", jsonin.Kind(object))
	}
	d.bytes, d.name = make([]byte, 0, len(object)), t.Table.Name()
	return op, d.row(&op, object)
}

// checkError adds operation and column to a JSON error inside an operation.
func checkError(err error) error {
	e, ok := errors.AsType[*jsonin.Error](err)
	if !ok || len(e.Path) < 2 || e.Path[0] != "ops" {
		return err
	}
	i, bad := strconv.Atoi(e.Path[1])
	if bad != nil {
		return err
	}
	err = errors.New(e.Reason())
	if len(e.Path) > 3 {
		err = fmt.Errorf("column %q: %w", e.Path[3], err)
	}
	return opError(i, err)
}

func (d *Decoder) operation(object []byte) (op Operation, err error) {
	if object[0] != '{' {
		return op, fmt.Errorf("want an object, not %s", jsonin.Kind(object))
	}
	var row, key []byte
	for w := jsonin.Walk(object); w.Next() && err == nil; {
		switch string(w.Name) {
		case "op":
			op.Kind, err = kindOf(w.Value)
		case "table":
			op.Target, err = d.target(w.Value)
		case "row":
			row = w.Value
		case "key":
			key = w.Value
		default:
			err = fmt.Errorf("unknown field %q", w.Name)
		}
	}
	if err != nil {
		return op, err
	}
	members, name, other := row, "row", key
	if deletes(op.Kind) {
		members, name, other = key, "key", row
	}
	switch {
	case op.Kind == 0:
		return op, errors.New(`"op" is missing`)
	case op.Target == nil:
		return op, errors.New(`"table" is missing`)
	case members == nil:
		return op, fmt.Errorf("%q is missing", name)
	case other != nil:
		return op, fmt.Errorf("this op takes only a %q", name)
	case members[0] != '{':
		return op, fmt.Errorf("%s: want an object, not %s", name, jsonin.Kind(members))
	}
	return op, d.row(&op, members)
}

func kindOf(value []byte) (oribi.Op, error) {
	if value[0] != '"' {
		return 0, fmt.Errorf("op: want a string, not %s", jsonin.Kind(value))
	}
	kind, ok := kinds[string(jsonin.String(value))]
	if !ok {
		return 0, fmt.Errorf("unknown op %s%s", value, nearest.Hint(string(jsonin.String(value)), nearest.Keys(kinds)))
	}
	return kind, nil
}

func (d *Decoder) target(value []byte) (*Target, error) {
	if value[0] != '"' {
		return nil, fmt.Errorf("table: want a string, not %s", jsonin.Kind(value))
	}
	name := jsonin.String(value)
	if d.last != nil && d.name == string(name) {
		return d.last, nil
	}
	t, err := d.Tables(string(name))
	if err != nil {
		return nil, err
	}
	d.last, d.name = t, string(name)
	return t, nil
}

// row parses the members of a row or key into op's cells.
func (d *Decoder) row(op *Operation, object []byte) error {
	s := op.Target.Schema
	n := len(s.Columns)
	d.bytes = d.bytes[:0]
	d.cells, d.set = slices.Grow(d.cells[:0], n)[:n], slices.Grow(d.set[:0], n)[:n]
	clear(d.cells)
	clear(d.set)
	op.Cells, op.Set = d.cells, d.set
	next := 0 // members are mostly in schema order
	for w := jsonin.Walk(object); w.Next(); {
		if next >= n || s.Columns[next].Name != string(w.Name) {
			if next = s.Index(string(w.Name)); next < 0 {
				return fmt.Errorf("column %q: no such column in table %q%s", w.Name, d.name,
					nearest.Hint(string(w.Name), s.Names()))
			}
		}
		if err := d.cell(op, next, w.Value); err != nil {
			return fmt.Errorf("column %q: %w", w.Name, err)
		}
		next++
	}
	for i := range s.Keys {
		if !op.Set[i] && !(s.Columns[i].AutoIncrement && op.Kind.Inserts()) {
			return fmt.Errorf("column %q: a key column is missing", s.Columns[i].Name)
		}
	}
	return nil
}

// cell parses one member.
func (d *Decoder) cell(op *Operation, i int, value []byte) (err error) {
	c := &op.Target.Schema.Columns[i]
	op.Set[i] = true
	switch {
	case deletes(op.Kind) && i >= op.Target.Schema.Keys:
		return errors.New("is not in the key")
	case value[0] == '{':
		if op.Operands == nil {
			op.Operands = make([]*oribi.Operand, len(op.Cells))
		}
		op.Operands[i] = new(oribi.Operand)
		d.bytes, *op.Operands[i], err = appendOperand(d.bytes, c, value)
		return err
	case !jsonin.IsNull(value):
		from := len(d.bytes)
		d.bytes, err = cell.FromJSON(d.bytes, c, value)
		op.Cells[i] = d.bytes[from:len(d.bytes):len(d.bytes)]
		return err
	case !c.Nullable:
		return errors.New("NULL in a NOT NULL column")
	}
	return nil
}

// Add adds the operation to a write batch.
func (op *Operation) Add(b *oribi.Batch) {
	if op.Operands == nil {
		b.Cells(op.Kind, op.Target.Table, op.Cells, op.Set)
		return
	}
	row := oribi.Row{}
	for i := range op.Cells {
		switch name := op.Target.Schema.Columns[i].Name; {
		case op.Operands[i] != nil:
			row[name] = *op.Operands[i]
		case op.Set[i]:
			row[name] = oribi.Cell(op.Cells[i])
		}
	}
	b.Row(op.Kind, op.Target.Table, row)
}
