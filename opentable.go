package oribi

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// OpenTable returns the table with the given name, with rows of type T. If the store has no such
// table, OpenTable creates it with the columns of SchemaOf, the indexes and the expiry of the tags, and the
// given options of tables.
//
// An existing table keeps its columns, indexes, and settings, whatever the tags and the options say. If it
// lacks the column of a field, OpenTable returns ErrSchema, or adds the column with Evolve. Options are each
// TableOption, Evolve, and ExactTime.
//
// Errors: ErrSchema for a struct that does not fit the table; the errors of Store.CreateTable, and with
// Evolve those of Table.Alter.
func OpenTable[T any](s *Store, name string, opts ...OpenOption) (*TableOf[T], error) {
	var o openOptions
	for _, opt := range opts {
		if opt != nil {
			opt.open(&o)
		}
	}
	table, err := s.Table(name)
	if errors.Is(err, fault.ErrNoTable) {
		var columns *schema.Schema
		if columns, err = SchemaOf[T](); err != nil {
			return nil, err
		}
		table, err = s.CreateTable(name, columns, append(tableOptionsOf[T](), o.table...)...)
		if errors.Is(err, fault.ErrExists) {
			table, err = s.Table(name) // another goroutine has created it
		}
	}
	if err == nil && o.evolve {
		err = evolve[T](table)
	}
	if err != nil {
		return nil, err
	}
	return typedTable[T](table, o.exact)
}

// tableOptionsOf returns what the tags of a struct type, of which SchemaOf has a schema, say about its
// table besides the columns.
func tableOptionsOf[T any]() (opts []TableOption) {
	rows, _ := bind.RowTypeOf(reflect.TypeFor[T]())
	for _, x := range rows.Indexes() {
		opts = append(opts, indexOption(x.Name, x.Columns, x.Unique))
	}
	if column, age := rows.Expires(); column != "" {
		opts = append(opts, Expires(column, age))
	}
	return opts
}

// Evolve makes OpenTable add to an existing table the columns of fields that it lacks, all or none, and
// then the indexes of the tags that it lacks. A new column is nullable, as that of a pointer, or has a
// default; existing rows then have NULL or the default. Nothing else about the table changes: OpenTable
// returns ErrSchema, before it has changed anything, for a new column that is neither, for a new column of
// the key, and for another type or another index of the same name. In a read-only store, a table that lacks
// something is ErrReadOnly.
//
// An index is built while other goroutines write, as by Alter with AddIndex, which takes its time with a
// large table.
func Evolve() OpenOption { return openOption(func(o *openOptions) { o.evolve = true }) }

type openOption func(*openOptions)

func (o openOption) open(p *openOptions) { o(p) }

// evolve adds to a table what the tags of T say and the table lacks.
func evolve[T any](t *Table) error {
	rows, err := bind.RowTypeOf(reflect.TypeFor[T]())
	if err != nil {
		return fmt.Errorf("oribi: %w", err)
	}
	for {
		changes, err := evolution(t, rows)
		if err != nil {
			return callErr(fmt.Sprintf("evolve table %q", t.tab.Name()), err)
		}
		if err = t.alterAll(changes); !errors.Is(err, fault.ErrExists) {
			return err
		}
		// Another goroutine has added some of that at the same time, which evolution finds now.
	}
}

// alterAll calls Alter for each list of changes.
func (t *Table) alterAll(changes [][]Alteration) error {
	for _, c := range changes {
		if err := t.Alter(context.Background(), c...); err != nil {
			return err
		}
	}
	return nil
}

// evolution returns the arguments of calls of Alter that add what a table lacks. Errors: ErrSchema, for
// each field.
func evolution(t *Table, rows *bind.RowType) (changes [][]Alteration, err error) {
	want, err := rows.Schema()
	if err != nil {
		return nil, err
	}
	has := t.tab.Schema().Schema
	var add []Alteration
	var errs []error
	for i, c := range want.Columns {
		at := has.Index(c.Name)
		if at >= 0 {
			err = rows.Fits(i, &has.Columns[at])
		} else if err = rows.Addable(i, &c); err == nil {
			add = append(add, AddColumn(c))
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if add != nil {
		changes = append(changes, add)
	}
	for _, x := range rows.Indexes() {
		i := slices.IndexFunc(t.Indexes(), func(y IndexInfo) bool { return x.Name == y.Name })
		switch {
		case i < 0 && x.Unique:
			changes = append(changes, []Alteration{AddUnique(x.Name, x.Columns...)})
		case i < 0:
			changes = append(changes, []Alteration{AddIndex(x.Name, x.Columns...)})
		case !slices.Equal(t.Indexes()[i].Columns, x.Columns) || t.Indexes()[i].Unique != x.Unique:
			errs = append(errs, fmt.Errorf("%s: index %q of the table is another one, of the columns %q: %w",
				rows.Type, x.Name, t.Indexes()[i].Columns, fault.ErrSchema))
		}
	}
	return changes, errors.Join(errs...)
}
