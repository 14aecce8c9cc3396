package oribi

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
)

// TableOf is a table whose rows are structs of type T.
//
// Exported fields stand for the columns that their tags name: `oribi:"host,key"`, `oribi:"size"`,
// `oribi:"-"` for none; without a tag the field's name in lower case. A field has the Go type of
// its column, or a type of that kind: integers; float32, float64; string; []byte; bool; time.Time
// for date and timestamp; Decimal; Int128. A pointer field is for a nullable column: nil is NULL.
// Of an array column it is a slice of those ([]string, [][]byte), of pointers if elements may be
// NULL ([]*int32), or []any with values as in Row; where the column is nullable, a nil slice is
// NULL. An element that is NULL in a slice that cannot hold it is ErrSchema. How a field is
// converted is found once for each version of the schema; when a column of a field is there no
// more, or under another name or type, that is ErrSchema.
type TableOf[T any] struct {
	Table *Table
	tags  []fieldTag
	bound atomic.Pointer[binding]
}

// binding is what the fields are in one version of the schema. Immutable.
type binding struct {
	shape   *tablet.Shape
	fields  []field
	columns []int // of the fields, indexes in the schema
}

// Typed is t with rows of type T. Every key column and every column that a new row has to have
// needs a field, save an auto-incrementing one: inserts do not look at its field (Batch.Assigned
// tells the values), all else but scans needs it. Errors: ErrSchema, naming the field.
func Typed[T any](t *Table) (*TableOf[T], error) {
	typ := reflect.TypeFor[T]()
	tags, err := fieldTags(typ)
	if err != nil {
		return nil, err
	}
	out := &TableOf[T]{Table: t, tags: tags}
	b, err := out.bind(t.tab.Shape())
	if err != nil {
		return nil, err
	}
	s := b.shape.Schema
	for i := range s.Columns {
		c := &s.Columns[i]
		if !slices.Contains(b.columns, i) && !c.AutoIncrement && (i < s.Keys || c.Required()) {
			return nil, fmt.Errorf("oribi: %s has no field for column %q: %w", typ, c.Name, fault.ErrSchema)
		}
	}
	return out, nil
}

// bind finds the columns of the fields in a version of the schema, by their names.
func (t *TableOf[T]) bind(shape *tablet.Shape) (*binding, error) {
	if b := t.bound.Load(); b != nil && b.shape == shape {
		return b, nil
	}
	typ, b := reflect.TypeFor[T](), &binding{shape: shape}
	for _, tag := range t.tags {
		col := shape.Schema.Index(tag.name)
		if col < 0 {
			return nil, fmt.Errorf("oribi: %s.%s: table %q has no column %q: %w", typ, tag.field.Name, t.Table.tab.Name(), tag.name, fault.ErrSchema)
		}
		f, err := newField(&shape.Schema.Columns[col], tag.field)
		if err != nil {
			return nil, fmt.Errorf("oribi: %s.%s: column %q: %w: %w", typ, tag.field.Name, tag.name, err, fault.ErrSchema)
		}
		f.col = col
		b.fields = append(b.fields, f)
		b.columns = append(b.columns, col)
	}
	t.bound.Store(b)
	return b, nil
}

// Insert adds rows that must not be there to a batch.
func (t *TableOf[T]) Insert(b *Batch, rows ...T) { t.add(OpInsert, b, rows) }

// Upsert adds rows, or sets the struct's columns of those that are there.
func (t *TableOf[T]) Upsert(b *Batch, rows ...T) { t.add(OpUpsert, b, rows) }

// Update sets the struct's columns of rows that must be there.
func (t *TableOf[T]) Update(b *Batch, rows ...T) { t.add(OpUpdate, b, rows) }

// Delete removes the rows with the keys of the structs; other fields are not looked at.
func (t *TableOf[T]) Delete(b *Batch, rows ...T) { t.add(OpDelete, b, rows) }

// Add adds one operation of any kind for each row.
func (t *TableOf[T]) Add(op Op, b *Batch, rows ...T) { t.add(op, b, rows) }

func (t *TableOf[T]) add(op Op, b *Batch, rows []T) {
rows:
	for i := range rows {
		p := b.part(t.Table)
		if p == nil {
			return
		}
		bound, err := t.bind(p.shape)
		if err != nil {
			b.spoil(&RowError{Row: b.n, Table: t.Table.tab.Name(), Cause: err})
			return
		}
		s := p.shape.Schema
		clear(p.cells)
		clear(p.set)
		v := reflect.ValueOf(&rows[i]).Elem()
		p.reserveValues(len(bound.fields))
		for k := range bound.fields {
			f := &bound.fields[k]
			if !takes(op, s, f.col) {
				continue
			}
			start := len(p.value)
			cell, err := f.put(p.value[start:start], v.Field(f.index))
			if err != nil {
				b.fail(t.Table, s.Columns[f.col].Name, err)
				continue rows
			}
			if cell != nil && !s.Columns[f.col].Type.Variable() {
				p.value = p.value[:start+len(cell)]
			}
			p.cells[f.col], p.set[f.col] = cell, true
		}
		b.add(op, p)
	}
}

// reserveValues makes room for n cells of fixed width in p.value, which is then not moved while
// they are made.
func (p *part) reserveValues(n int) {
	if cap(p.value) < 16*n {
		p.value = make([]byte, 0, 16*n)
	}
	p.value = p.value[:0]
}

// Get reads one row, as Table.Get does.
func (t *TableOf[T]) Get(ctx context.Context, key any, opts ...ReadOption) (T, error) {
	var row T
	o := collect(opts)
	view, err := t.Table.read(ctx, &o)
	if err != nil {
		return row, err
	}
	defer t.Table.done(view)
	b, err := t.bind(view.Shape)
	if err != nil {
		return row, err
	}
	var few [fewCells][]byte
	cells, err := t.Table.get(view, key, b.columns, few[:0])
	if err != nil {
		return row, err
	}
	v := reflect.ValueOf(&row).Elem()
	for i := range b.fields {
		if err := b.fields[i].read(v, cells[i]); err != nil {
			return row, fmt.Errorf("oribi: table %q: %w", t.Table.tab.Name(), err)
		}
	}
	return row, nil
}

// Scan reads rows, as Table.Scan does; Columns is set by the struct.
func (t *TableOf[T]) Scan(ctx context.Context, opts ...ReadOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		sc := t.Table.Scan(ctx, opts...)
		var fields []field
		sc.fit = func(shape *tablet.Shape) ([]int, error) {
			b, err := t.bind(shape)
			if err != nil {
				return nil, err
			}
			fields = b.fields
			return b.columns, nil
		}
		var zero T
		for b, err := range sc.Batches() {
			if err != nil {
				yield(zero, err)
				return
			}
			for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
				var row T
				v := reflect.ValueOf(&row).Elem()
				for k := range fields {
					if err := fields[k].read(v, b.Columns[k].Cell(i)); err != nil {
						yield(zero, fmt.Errorf("oribi: table %q: %w", t.Table.tab.Name(), err))
						return
					}
				}
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}
