package oribi

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Predicate is a condition on the columns of a row, for Where, Batch.If, Batch.UpdateIf, and
// Batch.DeleteIf. Eq, Gt, In, And, and the other functions below return predicates. A predicate
// names columns but no table. It can be used with any number of tables and by several goroutines at
// once.
//
// Values are Go values as in Row, or a Cell. The column must be able to represent them; the value
// for a date column is a time at midnight. A value that does not fit, or that is nil, is ErrSchema
// when the read begins; a column that the table does not have is ErrNoColumn.
//
// NULL is treated as in SQL: a comparison with a NULL is neither true nor false, and neither is Not
// of it. Where keeps only rows for which the predicate is true. Floats compare as numbers: −0
// equals +0, and a NaN is not equal to, below, or above any value. Arrays can be tested with IsNull
// and NotNull only.
//
// The zero Predicate is true for every row.
type Predicate struct {
	kind     predicateKind
	column   string
	values   []any // copies, which the caller cannot modify
	filter   *bloom.BloomFilter
	children []Predicate
}

type predicateKind uint8

const (
	isAnd predicateKind = iota // of no children: true
	isOr                       // of no children: false
	isNot
	isEq
	isNe
	isLt
	isLe
	isGt
	isGe
	isIn
	isBetween
	isPrefix
	isNull
	isNotNull
	isInBloom
	isLike
)

// Eq returns a predicate that is true if the column equals value.
func Eq(column string, value any) Predicate { return comparison(isEq, column, value) }

// Ne returns a predicate that is true if the column is not NULL and does not equal value.
func Ne(column string, value any) Predicate { return comparison(isNe, column, value) }

// Lt returns a predicate that is true if the column is less than value.
func Lt(column string, value any) Predicate { return comparison(isLt, column, value) }

// Le returns a predicate that is true if the column is less than or equal to value.
func Le(column string, value any) Predicate { return comparison(isLe, column, value) }

// Gt returns a predicate that is true if the column is greater than value.
func Gt(column string, value any) Predicate { return comparison(isGt, column, value) }

// Ge returns a predicate that is true if the column is greater than or equal to value.
func Ge(column string, value any) Predicate { return comparison(isGe, column, value) }

// In returns a predicate that is true if the column equals one of the values. Without values, it is
// true for no row.
func In[T any](column string, values ...T) Predicate {
	p := Predicate{kind: isIn, column: column, values: make([]any, len(values))}
	for i, v := range values {
		p.values[i] = freeze(v)
	}
	return p
}

// Between returns a predicate that is true if the column is at least low and at most high.
func Between(column string, low, high any) Predicate { return comparison(isBetween, column, low, high) }

// HasPrefix returns a predicate that is true if the column, a string or binary, begins with prefix,
// a string or []byte.
func HasPrefix(column string, prefix any) Predicate { return comparison(isPrefix, column, prefix) }

// HasSuffix returns a predicate that is true if the column, a string or binary, ends with suffix, a
// string or []byte.
func HasSuffix(column string, suffix any) Predicate { return comparison(isLike, column, "", suffix) }

// Contains returns a predicate that is true if the column, a string or binary, contains part, a
// string or []byte.
func Contains(column string, part any) Predicate { return comparison(isLike, column, "", part, "") }

// IsNull returns a predicate that is true if the column is NULL.
func IsNull(column string) Predicate { return Predicate{kind: isNull, column: column} }

// NotNull returns a predicate that is true if the column is not NULL.
func NotNull(column string) Predicate { return Predicate{kind: isNotNull, column: column} }

// InBloom returns a predicate that is true if the column's value was added to a Bloom filter. It is
// also true for some values that were not added, the false positives. It is never true for NULL.
// Values are added to the filter as BloomBytes returns them. The filter must not be modified
// afterwards.
//
// Table.Scan, TableOf.Scan, and ScanAs test fewer rows while a filter excludes little: after each
// sample of 4096 tested rows of which more than 90 % pass, all rows with a value pass without a
// test, except in every 16th batch, which is the next sample. So no row of a value in the filter is
// ever missing, but there are more false positives than the filter has by itself. Which ones
// depends on how the rows are stored, and two scans of the same state may return different ones. To
// get the same rows each time, test those of the result again: filter.Test(bytes).
//
// All else tests each row and gives exactly the filter's own answers: Not(InBloom(…)), which is
// true for values that certainly were not added, but not for false positives; Count and Aggregate;
// and the predicates of changes and conditions.
func InBloom(column string, filter *bloom.BloomFilter) Predicate {
	return Predicate{kind: isInBloom, column: column, filter: filter}
}

// BloomBytes returns the bytes that InBloom looks up for a value of a column. They are those of the
// column's type:
//
//	bool                       1 byte, 0 or 1
//	integers                   little-endian, in the width of the column's type
//	float, double              IEEE 754, little-endian; −0 as +0
//	decimal(p,s)               the unscaled integer, little-endian: 4 bytes for p up to 9, 8 up to 18, 16 above
//	date                       days since 1970-01-01, 4 bytes, little-endian
//	timestamp                  microseconds since 1970-01-01, 8 bytes, little-endian
//	string, varchar, binary    the bytes
//
// They are also the cells of batches and of GetCells, so a filter can be filled from the result of
// another scan: filter.Add(vector.Cell(i)). A filter for a column serves all columns of the same
// type; for decimals, of the same scale, too.
//
// Errors: ErrSchema for a value that does not fit the column, for nil, and for arrays.
func BloomBytes(column *schema.Column, value any) ([]byte, error) {
	cell, err := predicateCell(column, value)
	if err != nil {
		return nil, fmt.Errorf("oribi: column %q: value %s: %w: %w", column.Name, bind.Clip(bind.Literal(value)), err, fault.ErrSchema)
	}
	if column.Type.Float() && batch.Compare(column.Type, cell, make([]byte, 8)) == 0 && cell[len(cell)-1] == 0x80 {
		cell = make([]byte, len(cell))
	}
	return bytes.Clone(cell), nil
}

// And returns a predicate that is true if all predicates are. Without predicates, it is true for
// every row.
func And(predicates ...Predicate) Predicate {
	return Predicate{kind: isAnd, children: slices.Clone(predicates)}
}

// Or returns a predicate that is true if at least one of the predicates is. Without predicates, it
// is true for no row.
func Or(predicates ...Predicate) Predicate {
	return Predicate{kind: isOr, children: slices.Clone(predicates)}
}

// Not returns a predicate that is true if p is false. If p is neither true nor false, because of a
// NULL, neither is Not.
func Not(p Predicate) Predicate { return Predicate{kind: isNot, children: []Predicate{p}} }

func comparison(kind predicateKind, column string, values ...any) Predicate {
	for i, v := range values {
		values[i] = freeze(v)
	}
	return Predicate{kind: kind, column: column, values: values}
}

// freeze returns a copy of a value that the caller cannot modify.
func freeze(v any) any {
	switch b := v.(type) {
	case nil:
		return nil
	case []byte:
		if b == nil {
			return nil
		}
		return bytes.Clone(b)
	case Cell:
		if b == nil {
			return nil
		}
		return Cell(bytes.Clone(b))
	}
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.Pointer && r.IsNil():
		return nil
	case r.Kind() == reflect.Pointer:
		return freeze(r.Elem().Interface())
	case r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8:
		return freeze(r.Bytes())
	}
	return v
}

// bind resolves the columns of predicates in a schema and returns a filter for their conjunction.
func (t *Table) bind(s *schema.Schema, predicates []Predicate) (batch.Filter, error) {
	return t.bindTo(binder{Schema: s}, predicates)
}

// bindTo is bind for a filter that may have more false positives, if s.mayRest is set.
func (t *Table) bindTo(s binder, predicates []Predicate) (batch.Filter, error) {
	if len(predicates) == 0 {
		return batch.Filter{}, nil
	}
	p := And(predicates...)
	f, err := p.filterOf(s, false)
	if err != nil {
		return batch.Filter{}, fmt.Errorf("oribi: table %q: %w", t.tab.Name(), err)
	}
	return f, nil
}

// Bind returns p as the filter of a scan of rows with schema s, for the packages below this one,
// such as kudu. Errors: ErrNoColumn, ErrSchema.
func (p Predicate) Bind(s *schema.Schema) (batch.Filter, error) {
	f, err := p.filterOf(binder{Schema: s}, false)
	if err != nil {
		return f, fmt.Errorf("oribi: %w", err)
	}
	return f, nil
}

// Columns returns the names of the columns that p tests, each once, in the order of p.
func (p Predicate) Columns() []string { return p.appendColumns(nil) }

func (p *Predicate) appendColumns(dst []string) []string {
	switch p.kind {
	case isAnd, isOr, isNot:
		for i := range p.children {
			dst = p.children[i].appendColumns(dst)
		}
	default:
		if !slices.Contains(dst, p.column) {
			dst = append(dst, p.column)
		}
	}
	return dst
}

// binder is a schema in which predicates are resolved.
type binder struct {
	*schema.Schema
	mayRest bool // InBloom may rest (see batch.Predicate.MayRest)
}

// filterOf returns a filter that is true for the rows for which p is true or, if negated is set,
// false.
//
// A batch.Filter has two truth values, SQL has three. So filterOf pushes negation down to the
// comparisons, which exclude NULLs with a separate test.
func (p *Predicate) filterOf(s binder, negated bool) (batch.Filter, error) {
	switch p.kind {
	case isNot:
		return p.children[0].filterOf(s, !negated)
	case isAnd, isOr:
		children := p.children
		if p.kind == isOr {
			children = joinEqualities(appendAlternatives(nil, children))
		}
		filters := make([]batch.Filter, len(children))
		for i := range children {
			var err error
			if filters[i], err = children[i].filterOf(s, negated); err != nil {
				return batch.Filter{}, err
			}
		}
		if (p.kind == isAnd) == negated {
			return batch.Or(filters...), nil
		}
		return batch.And(filters...), nil
	}
	i := s.Index(p.column)
	if i < 0 {
		return batch.Filter{}, fmt.Errorf("column %q: %w", p.column, s.NoColumn(p.column))
	}
	f, err := p.testOf(&s.Columns[i], negated, s.mayRest && !negated && p.kind == isInBloom)
	if err != nil {
		return f, fmt.Errorf("column %q: %w: %w", p.column, err, fault.ErrSchema)
	}
	return f, nil
}

// appendAlternatives appends predicates to dst. It replaces an Or by its own alternatives.
func appendAlternatives(dst, predicates []Predicate) []Predicate {
	for i := range predicates {
		if p := predicates[i].only(); p.kind == isOr {
			dst = appendAlternatives(dst, p.children)
		} else {
			dst = append(dst, *p)
		}
	}
	return dst
}

// joinEqualities joins the alternatives on each column that are Eq or In into one In.
func joinEqualities(alternatives []Predicate) []Predicate {
	var out []Predicate
	places := map[string]int{}
	for _, p := range alternatives {
		if p.kind == isEq || p.kind == isIn {
			if at, ok := places[p.column]; ok {
				out[at].kind = isIn
				out[at].values = append(slices.Clip(out[at].values), p.values...)
				continue
			}
			places[p.column] = len(out)
		}
		out = append(out, p)
	}
	return out
}

// columnTests maps the predicates on one column that are one batch.Operator to it; opposites maps
// operators to their opposites.
var (
	columnTests = map[predicateKind]batch.Operator{isEq: batch.Eq, isNe: batch.Ne, isLt: batch.Lt, isLe: batch.Le, isGt: batch.Gt,
		isGe: batch.Ge, isIn: batch.In, isNull: batch.IsNull, isNotNull: batch.NotNull, isInBloom: batch.InFilter}
	opposites = map[batch.Operator]batch.Operator{batch.Eq: batch.Ne, batch.Ne: batch.Eq, batch.Lt: batch.Ge, batch.Ge: batch.Lt,
		batch.Gt: batch.Le, batch.Le: batch.Gt, batch.IsNull: batch.NotNull, batch.NotNull: batch.IsNull}
)

// testOf is filterOf for a predicate on column c, which may rest.
func (p *Predicate) testOf(c *schema.Column, negated, mayRest bool) (batch.Filter, error) {
	values, err := p.valueColumn(c)
	if err != nil {
		return batch.Filter{}, err
	}
	cells := make([][]byte, len(p.values))
	for i, v := range p.values {
		if cells[i], err = predicateCell(values, v); err != nil {
			return batch.Filter{}, fmt.Errorf("value %s: %w", bind.Clip(bind.Literal(v)), err)
		}
	}
	var tests []batch.Filter
	add := func(op batch.Operator, values ...[]byte) error {
		test := batch.Predicate{Column: c.Name, ID: c.ID, Type: c.Type, Op: op, Values: values, Filter: p.filter, MayRest: mayRest}
		err := test.Prepare()
		tests = append(tests, batch.Test(test))
		return err
	}
	switch p.kind {
	case isBetween:
		if err := errors.Join(add(batch.Ge, cells[0]), add(batch.Le, cells[1])); err != nil {
			return batch.Filter{}, err
		}
	case isPrefix:
		if err := addPrefix(add, cells[0]); err != nil {
			return batch.Filter{}, err
		}
	case isLike:
		// The bounds of the prefix need fewer values, and key ranges and zone maps know them.
		if len(cells[0]) > 0 {
			if err := addPrefix(add, cells[0]); err != nil {
				return batch.Filter{}, err
			}
		}
		if err := add(batch.Like, cells...); err != nil {
			return batch.Filter{}, err
		}
	default:
		op := columnTests[p.kind]
		if opposite, ok := opposites[op]; negated && ok && exactOpposite(c.Type, op) {
			op, negated = opposite, false
		}
		if err := add(op, cells...); err != nil {
			return batch.Filter{}, err
		}
	}
	f := batch.And(tests...)
	if !negated {
		return f, nil
	}
	if !c.Nullable {
		return batch.Not(f), nil
	}
	notNull := batch.Predicate{Column: c.Name, ID: c.ID, Type: c.Type, Op: batch.NotNull}
	err = notNull.Prepare()
	return batch.And(batch.Test(notNull), batch.Not(f)), err
}

// valueColumn returns the column that the values of p must fit: c, except that a prefix, suffix, or
// part may be longer than a varchar. Then it is true for no row.
func (p *Predicate) valueColumn(c *schema.Column) (*schema.Column, error) {
	switch {
	case p.kind != isPrefix && p.kind != isLike:
		return c, nil
	case c.Type.Variable() && c.Type != schema.Array:
		text := *c
		if c.Type == schema.Varchar {
			text.Type, text.Length = schema.String, 0
		}
		return &text, nil
	case p.kind == isPrefix:
		return nil, fmt.Errorf("type %s has no prefixes", c.TypeName())
	}
	return nil, fmt.Errorf("type %s has no text to search", c.TypeName())
}

// addPrefix adds the tests of a prefix.
func addPrefix(add func(op batch.Operator, values ...[]byte) error, prefix []byte) error {
	err := add(batch.Ge, prefix)
	if end := keyenc.PrefixEnd(prefix); err == nil && end != nil {
		err = add(batch.Lt, end)
	}
	return err
}

// exactOpposite reports whether the opposite of op is true for exactly the cells, other than NULL,
// for which op is not. A NaN is neither below a value nor at least equal to it.
func exactOpposite(t schema.Type, op batch.Operator) bool {
	ordered := op == batch.Lt || op == batch.Le || op == batch.Gt || op == batch.Ge
	return !ordered || !t.Float()
}

// predicateCell returns a predicate's value as a cell.
func predicateCell(c *schema.Column, v any) ([]byte, error) {
	if c.Type == schema.Array {
		return nil, errors.New("arrays are tested with IsNull and NotNull alone")
	}
	if v == nil {
		return nil, errors.New("NULL equals nothing: use IsNull or NotNull")
	}
	if t, ok := v.(time.Time); ok && c.Type == schema.Date {
		if h, m, s := t.Clock(); h != 0 || m != 0 || s != 0 || t.Nanosecond() != 0 {
			return nil, fmt.Errorf("%s is not a date: its time of day is not midnight", t.Format(time.RFC3339Nano))
		}
	}
	return bind.Append(nil, c, v)
}

// String returns p in the syntax of SQL. A Bloom filter prints as bloom(n bits) and a Cell as
// hexadecimal bytes.
func (p Predicate) String() string {
	var b strings.Builder
	p.write(&b)
	return b.String()
}

var comparisonTexts = map[predicateKind]string{isEq: " = ", isNe: " <> ", isLt: " < ", isLe: " <= ", isGt: " > ", isGe: " >= ",
	isNull: " IS NULL", isNotNull: " IS NOT NULL"}

func (p *Predicate) write(b *strings.Builder) {
	p = p.only()
	name := bind.QuoteName(p.column)
	switch p.kind {
	case isAnd, isOr:
		p.writeJoined(b)
	case isNot:
		b.WriteString("NOT (")
		p.children[0].write(b)
		b.WriteString(")")
	case isIn:
		fmt.Fprintf(b, "%s IN (", name)
		for i, v := range p.values {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(bind.Literal(v))
		}
		b.WriteString(")")
	case isBetween:
		fmt.Fprintf(b, "%s BETWEEN %s AND %s", name, bind.Literal(p.values[0]), bind.Literal(p.values[1]))
	case isPrefix:
		if s, ok := p.values[0].(string); ok {
			fmt.Fprintf(b, "%s LIKE %s", name, bind.Literal(likeEscapes.Replace(s)+"%"))
		} else {
			fmt.Fprintf(b, "starts_with(%s, %s)", name, bind.Literal(p.values[0]))
		}
	case isLike:
		p.writeLike(b, name)
	case isInBloom:
		bits := uint(0)
		if p.filter != nil {
			bits = p.filter.Cap()
		}
		fmt.Fprintf(b, "%s IN bloom(%d bits)", name, bits)
	default:
		b.WriteString(name)
		b.WriteString(comparisonTexts[p.kind])
		if len(p.values) > 0 {
			b.WriteString(bind.Literal(p.values[0]))
		}
	}
}

// writeLike writes a pattern. One of values that are not text is a call.
func (p *Predicate) writeLike(b *strings.Builder, name string) {
	pattern := make([]string, len(p.values))
	for i, v := range p.values {
		s, ok := v.(string)
		if !ok {
			fmt.Fprintf(b, "like(%s", name)
			for _, v := range p.values {
				b.WriteString(", " + bind.Literal(v))
			}
			b.WriteString(")")
			return
		}
		pattern[i] = likeEscapes.Replace(s)
	}
	fmt.Fprintf(b, "%s LIKE %s", name, bind.Literal(strings.Join(pattern, "%")))
}

// only returns p, or the only predicate that p joins.
func (p *Predicate) only() *Predicate {
	for (p.kind == isAnd || p.kind == isOr) && len(p.children) == 1 {
		p = &p.children[0]
	}
	return p
}

func (p *Predicate) writeJoined(b *strings.Builder) {
	between, empty := " AND ", "TRUE"
	if p.kind == isOr {
		between, empty = " OR ", "FALSE"
	}
	if len(p.children) == 0 {
		b.WriteString(empty)
	}
	for i := range p.children {
		if i > 0 {
			b.WriteString(between)
		}
		c := p.children[i].only()
		if (c.kind == isAnd || c.kind == isOr) && c.kind != p.kind && len(c.children) > 0 {
			b.WriteString("(")
			c.write(b)
			b.WriteString(")")
		} else {
			c.write(b)
		}
	}
}

var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
