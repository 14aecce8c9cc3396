package oribi

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// TableOf is a table whose rows are structs of type T. It is safe for concurrent use.
//
// # Fields
//
// Exported fields are columns, named by their tags:
//
//	Host string `oribi:"host,key"` // column host, in the key
//	Size int64  `oribi:"size"`     // column size
//	Note string                    // column note: without a tag, the field's name in lower case
//	Memo string `oribi:"-"`        // no column
//
// Options follow the name, of which SchemaOf and OpenTable make new tables:
//
//	key                   the column is in the key; these fields come first
//	auto                  the auto-incrementing column, an int64 in the key: ID int64 `oribi:",auto"`, without a name,
//	                      since it is auto_incrementing_id for each table, as in Kudu
//	decimal(18,2)         the type of the column, or of the elements of an array: any type but array(…),
//	varchar(10), date     as schema.Column.TypeName spells it; a Decimal needs it
//	default=VALUE         the value in rows that do not set the column; with a comma in it, in single quotes: '1,5'
//	immutable             only an insert sets the column: an update by the struct is refused, or skips it if it is of
//	                      an Ignore kind
//	unique                OpenTable creates the unique index by_ and the column's name
//	index, index=NAME     OpenTable creates an index, by_ and the column's name if it has no NAME; an index has
//	                      all columns that name it, in the order of the fields
//	expires, expires=24h  OpenTable makes rows expire at the time in the column, or so long after it (see Expires)
//	enc=NAME              the encoding: plain, prefix, rle, dict, or bitshuffle
//	lz4hc, dense          the compression
//
// A default is text: a number, true, a date such as 2006-01-02, a time as in RFC 3339, 0x and hexadecimal
// digits for binary, JSON for an array. A struct sets the columns of all its fields, also to zero, so a
// default is for other rows: those of structs without the field, those of a Row, and those that were written before
// Evolve added the column.
//
// The fields of an embedded struct are fields of the row. These are errors: an embedded pointer, a
// malformed tag, a tag on a field that is not exported, and two fields for one column.
//
// The type of a field is one of those listed for its column's type, or a type defined by one of
// them:
//
//	integers            an integer type that can represent every value of the column
//	float, double       float64; float32 for float
//	string, varchar     string, []byte
//	binary              []byte, string; [n]byte if all values have n bytes
//	bool                bool
//	timestamp, date     time.Time, rounded down to microseconds or to its day, and read in UTC; see ExactTime
//	decimal             Decimal
//	int128              Int128
//	array               a slice of these; of pointers if elements may be NULL; or []any with values as in Row
//	all of them         Cell, nil for NULL; Operand in structs for updates and upserts alone, of which the
//	                    zero value leaves the column unset
//
// The field of a nullable column is a pointer to such a type or a slice, nil for NULL.
//
// # Columns
//
// A TableOf identifies columns by their IDs, not by their names: a renamed column keeps its field.
// After a field's column is dropped, calls that use it return ErrSchema. Inserts do not set columns
// that have no field, and updates do not change them. A read of a value that its field cannot
// contain returns ErrSchema.
//
// GetAs and ScanAs read some columns of a table, and Patch sets some, with a struct that has fields
// for these columns only.
type TableOf[T any] struct {
	Table *Table
	rows  *bind.RowType
	ids   []schema.ColumnID // of the columns of the fields
	exact bool              // times with nanoseconds are refused
	bound atomic.Pointer[bind.Binding]
}

// OpenOption is an option of OpenTable: each TableOption, Evolve, and ExactTime. A nil option has no effect.
type OpenOption interface{ open(*openOptions) }

// TypedOption is an option of Typed and of OpenTable: ExactTime. A nil option has no effect.
type TypedOption interface {
	OpenOption
	typed()
}

type openOptions struct {
	table         []TableOption
	evolve, exact bool
}

func (o TableOption) open(p *openOptions) { p.table = append(p.table, o) }

// ExactTime makes the TableOf refuse rows with a time that a timestamp cannot represent, since it has
// nanoseconds: the error is ErrRow. Without it, times are rounded down to microseconds. That is also so for
// times that are no fields of such rows: in keys, predicates, and rows that are a Row.
func ExactTime() TypedOption { return exactTime{} }

type exactTime struct{}

func (exactTime) open(o *openOptions) { o.exact = true }
func (exactTime) typed()              {}

// Typed returns t with rows of type T. T must have a field for every key column and for every
// column that is neither nullable nor has a default. An auto-incrementing column needs no field for
// inserts, which ignore its value (Batch.Assigned returns the assigned ones), but does for all
// other operations.
//
// Errors: ErrSchema, naming the field or the column.
func Typed[T any](t *Table, opts ...TypedOption) (*TableOf[T], error) {
	var o openOptions
	for _, opt := range opts {
		if opt != nil {
			opt.open(&o)
		}
	}
	return typedTable[T](t, o.exact)
}

func typedTable[T any](t *Table, exact bool) (*TableOf[T], error) {
	typed, err := bindTable[T](t, exact)
	if err != nil {
		return nil, err
	}
	if b := typed.bound.Load(); b.Lacks != "" {
		return nil, fmt.Errorf("oribi: %s has no field for column %q of table %q, which every new row must set; "+
			"to read or patch without it, use GetAs, ScanAs and Patch: %w",
			typed.rows.Type, b.Lacks, t.tab.Name(), fault.ErrSchema)
	}
	return typed, nil
}

var errNilTable = fmt.Errorf("oribi: the table is nil: %w", fault.ErrNoTable)

// bindTable is Typed for structs that may lack any column.
func bindTable[T any](t *Table, exact bool) (*TableOf[T], error) {
	if t == nil {
		return nil, errNilTable
	}
	rows, err := bind.RowTypeOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, fmt.Errorf("oribi: %w", err)
	}
	typed := &TableOf[T]{Table: t, rows: rows, exact: exact, ids: make([]schema.ColumnID, rows.Len())}
	tableSchema := t.tab.Schema()
	b, err := rows.Bind(tableSchema.Schema, exact, func(i int) (int, error) {
		col := tableSchema.Schema.Index(rows.Column(i))
		if col < 0 {
			name := rows.Column(i)
			return col, fmt.Errorf("table %q has no column %q (OpenTable adds it with oribi.Evolve()): %w", t.tab.Name(), name,
				nearest.Error(fault.ErrSchema, name, tableSchema.Schema.Names))
		}
		typed.ids[i] = tableSchema.Schema.Columns[col].ID
		return col, nil
	})
	if err != nil {
		return nil, callErr("", err)
	}
	typed.bound.Store(b)
	return typed, nil
}

// viewOf is bindTable with the table's present schema. It keeps the result for the next call.
func viewOf[T any](t *Table) (*TableOf[T], error) {
	if t == nil {
		return nil, errNilTable
	}
	typ := reflect.TypeFor[T]()
	if known, ok := t.entry.Kept.Load(typ); ok {
		// After an Alter, the fields are bound again: a name may belong to another column now.
		view := known.(*TableOf[T])
		if view.bound.Load().Schema == t.tab.Schema().Schema {
			return view, nil
		}
	}
	view, err := bindTable[T](t, false)
	if err == nil {
		t.entry.Kept.Store(typ, view)
	}
	return view, err
}

// bind finds the columns of the fields in a version of the schema.
func (t *TableOf[T]) bind(tableSchema *tablet.TableSchema) (*bind.Binding, error) {
	if b := t.bound.Load(); b.Schema == tableSchema.Schema {
		return b, nil
	}
	b, err := t.rows.Bind(tableSchema.Schema, t.exact, func(i int) (int, error) {
		col := tableSchema.Schema.IndexID(t.ids[i])
		if col < 0 {
			return col, fmt.Errorf("column %q of table %q was dropped: %w", t.rows.Column(i), t.Table.tab.Name(),
				fault.ErrSchema)
		}
		return col, nil
	})
	if err == nil {
		t.bound.Store(b)
	}
	return b, err
}

// bindFor is bind for an operation. It returns an error if the struct lacks a column that the
// operation needs.
func (t *TableOf[T]) bindFor(op Op, tableSchema *tablet.TableSchema) (*bind.Binding, error) {
	b, err := t.bind(tableSchema)
	if err != nil {
		return nil, err
	}
	lacks := b.Keyless
	if op == OpInsert || op == OpInsertIgnore || op == OpUpsert || op == OpUpsertIgnore {
		lacks = b.Lacks
	}
	if lacks != "" {
		return nil, fmt.Errorf("%s has no field for column %q: %w", t.rows.Type, lacks, fault.ErrSchema)
	}
	return b, nil
}

// Get reads one row, as Table.Get does.
func (t *TableOf[T]) Get(ctx context.Context, key any, opts ...GetOption) (T, error) {
	for tries := 0; ; tries++ {
		row, err := t.get(ctx, key, opts)
		if err == nil || !restarts(ctx, t.Table, opts, err, tries) {
			return row, err
		}
	}
}

func (t *TableOf[T]) get(ctx context.Context, key any, opts []GetOption) (T, error) {
	var row T
	k := keyReads.Get().(*keyRead)
	defer k.release()
	collectInto(&k.o, opts)
	var v view
	if err := t.Table.read(ctx, &k.o, &v); err != nil {
		return row, err
	}
	defer t.Table.done(&v)
	b, err := t.bindRead(v.TableSchema, k.o.all, k.o.columns)
	if err != nil {
		return row, callErr("", err)
	}
	var few [fewCells][]byte
	cells, err := t.Table.get(&v, k, key, b.Columns, few[:0])
	if err != nil {
		return row, err
	}
	return row, t.read(b, &row, cells)
}

// read sets row from the cells of b.Columns.
func (t *TableOf[T]) read(b *bind.Binding, row *T, cells [][]byte) error {
	if err := b.Read(reflect.ValueOf(row).Elem(), cells); err != nil {
		return fmt.Errorf("oribi: table %q: %w", t.Table.tab.Name(), err)
	}
	return nil
}

// rowOf returns a row with the cells of b.Columns, or nil if cells is nil.
func (t *TableOf[T]) rowOf(b *bind.Binding, cells [][]byte) (*T, error) {
	if cells == nil {
		return nil, nil
	}
	row := new(T)
	err := t.read(b, row, cells)
	return row, err
}

// GetAs reads one row into a T, as Table.Get does. T may have fields for any columns of the table,
// and GetAs reads only these. Errors: ErrSchema for a struct that does not fit the table; the
// errors of Table.Get.
func GetAs[T any](ctx context.Context, t *Table, key any, opts ...GetOption) (T, error) {
	view, err := viewOf[T](t)
	if err != nil {
		var none T
		return none, err
	}
	return view.Get(ctx, key, opts...)
}

// GetMany reads rows by keys under one snapshot, as Table.GetMany does. Row i of the result is that
// of keys[i], nil if there is none.
func (t *TableOf[T]) GetMany(ctx context.Context, keys []any, opts ...GetOption) ([]*T, error) {
	var b *bind.Binding
	o := collect(opts)
	o.fit = t.fit(&b, &o)
	rows := make([]*T, len(keys))
	var few [fewCells][]byte
	cells := few[:0]
	_, err := t.Table.getMany(ctx, keys, o, func(v *view, i int, key []byte, cols []int) (err error) {
		var found bool
		rows[i] = nil
		if cells, found, err = v.Get(key, cols, cells[:0]); found {
			rows[i], err = t.rowOf(b, cells)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// GetBy reads the row with the given values in the columns of a unique index, as Table.GetBy does.
func (t *TableOf[T]) GetBy(ctx context.Context, index string, values any, opts ...GetOption) (T, error) {
	for tries := 0; ; tries++ {
		row, err := t.getBy(ctx, index, values, opts)
		if err == nil || !restarts(ctx, t.Table, opts, err, tries) {
			return row, err
		}
	}
}

func (t *TableOf[T]) getBy(ctx context.Context, index string, values any, opts []GetOption) (T, error) {
	var row T
	r := indexReads.Get().(*indexRead)
	defer r.release()
	collectInto(&r.o, opts)
	if err := r.begin(ctx, t.Table, index, values); err != nil {
		return row, err
	}
	defer t.Table.done(&r.v)
	b, err := t.bindRead(r.v.TableSchema, r.o.all, r.o.columns)
	if err != nil {
		return row, callErr("", err)
	}
	if err := r.get(t.Table, b.Columns); err != nil {
		return row, err
	}
	return row, t.read(b, &row, r.cells)
}

// bindRead is bind for a read of all columns or of some.
func (t *TableOf[T]) bindRead(tableSchema *tablet.TableSchema, all bool, names []string) (*bind.Binding, error) {
	b, err := t.bind(tableSchema)
	if err != nil || all {
		return b, err
	}
	cols, err := t.Table.indexes(tableSchema, names)
	if err != nil {
		return nil, err
	}
	if b, err = b.Choose(cols); err != nil {
		return nil, fmt.Errorf("%s: %w", t.rows.Type, err)
	}
	return b, nil
}

// fit returns a function that chooses the columns of a read with options o and sets b to how they are
// read.
func (t *TableOf[T]) fit(b **bind.Binding, o *readOptions) func(*tablet.TableSchema) ([]int, error) {
	all, names := o.all, o.columns
	return func(tableSchema *tablet.TableSchema) (columns []int, err error) {
		if *b, err = t.bindRead(tableSchema, all, names); err != nil {
			return nil, err
		}
		return (*b).Columns, nil
	}
}

// Scan reads rows, as Table.Scan does, with the columns of the struct.
func (t *TableOf[T]) Scan(ctx context.Context, opts ...ScanOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		sc := &Scan{t: t.Table, ctx: ctx, rows: true}
		collectInto(&sc.o, opts)
		t.scan(sc, yield)
	}
}

// scan yields the rows of a scan.
func (t *TableOf[T]) scan(sc *Scan, yield func(T, error) bool) {
	var bound *bind.Binding
	var cells [][]byte
	var zero T
	row := new(T) // each row in turn
	sc.single = true
	sc.o.fit = t.fit(&bound, &sc.o)
	for b, err := range sc.Batches() {
		if err != nil {
			yield(zero, err)
			return
		}
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			cells = cells[:0]
			for _, v := range b.Columns {
				cells = append(cells, v.Cell(i))
			}
			*row = zero
			if err := t.read(bound, row, cells); err != nil {
				yield(zero, err)
				return
			}
			if !yield(*row, nil) {
				sc.stop(i)
				return
			}
			if err := sc.interrupted(); err != nil {
				yield(zero, sc.errorf(err))
				return
			}
		}
	}
}

// ScanAs reads rows as values of type T, as Table.Scan does. T may have fields for any columns of
// the table, and ScanAs reads only these. Errors come with the first step or any later one:
// ErrSchema for a struct that does not fit the table; the errors of Table.Scan.
func ScanAs[T any](ctx context.Context, t *Table, opts ...ScanOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		view, err := viewOf[T](t)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		view.Scan(ctx, opts...)(yield)
	}
}

// VersionOf is one version of a row: its content from Timestamp on.
type VersionOf[T any] struct {
	Timestamp mvcc.Timestamp // of the write batch; 0 for Base
	Kind      ChangeKind
	Row       *T // nil if the row was deleted
}

// History reads the versions of one row, newest first, as Table.History does: one for each
// timestamp at which a column of the struct changed. With AsOf or At it returns no newer versions
// than those.
func (t *TableOf[T]) History(ctx context.Context, key any, opts ...GetOption) iter.Seq2[VersionOf[T], error] {
	return func(yield func(VersionOf[T], error) bool) {
		var b *bind.Binding
		o := collect(opts)
		o.fit = t.fit(&b, &o)
		for v, err := range t.Table.versions(ctx, key, o) {
			out := VersionOf[T]{Timestamp: v.Timestamp, Kind: v.Kind}
			if err == nil {
				out.Row, err = t.rowOf(b, v.Cells)
			}
			if err != nil {
				yield(VersionOf[T]{}, err)
				return
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

// DifferenceOf is a row whose content differs between two timestamps.
type DifferenceOf[T any] struct {
	Kind   ChangeKind
	Before *T // as of the earlier timestamp; nil if the row did not exist
	After  *T // as of the later timestamp; nil if the row did not exist
}

// Diff reads the rows for which a column of the struct differs between the states AsOf(from) and
// AsOf(to), as Table.Diff does.
func (t *TableOf[T]) Diff(
	ctx context.Context, from, to mvcc.Timestamp, opts ...RowsOption,
) iter.Seq2[DifferenceOf[T], error] {
	return func(yield func(DifferenceOf[T], error) bool) {
		var b *bind.Binding
		o := collect(opts)
		o.fit = t.fit(&b, &o)
		for d, err := range t.Table.differences(ctx, from, to, o) {
			out := DifferenceOf[T]{Kind: d.Kind}
			if err == nil {
				out.Before, err = t.rowOf(b, d.Before)
			}
			if err == nil {
				out.After, err = t.rowOf(b, d.After)
			}
			if err != nil {
				yield(DifferenceOf[T]{}, err)
				return
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}

// Has reports whether there is a row with a key, as Table.Has does.
func (t *TableOf[T]) Has(ctx context.Context, key any, opts ...ReadOption) (bool, error) {
	return t.Table.Has(ctx, key, opts...)
}
