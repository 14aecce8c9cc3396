package oribi

import (
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/operand"
)

// Operand is a value of a Row from which the commit computes the new value of the column, given the one
// before: Add, Min, Max, SetIfNull, and Append return operands.
//
//	b.Upsert(pages, oribi.Row{"url": url, "hits": oribi.Add(1), "last": oribi.Max(now), "first": oribi.SetIfNull(now)})
//
// Updates and upserts of all kinds, also UpdateIf, UpdateWhere, and those of transactions, take operands
// in columns that are not in the key. Inserts and deletes do not.
//
// The value before is that of the newest state with the earlier operations of the batch applied, and the
// row stays locked from then on. So operations with operands do not conflict with one another, each is
// carried out once, and no value is read before. Batch.Results and Tx.Results return the new values. In the log, the
// history, and indexes, the operation is one with plain values; a column that keeps its value is not
// changed.
//
// If the value before is NULL, the new one is the operand, whatever the kind. An upsert of a row that
// does not exist, or has expired, begins with the default of the column, or NULL without one, also if the
// column is not nullable. A row whose result does not fit the column is refused with ErrOverflow, and so
// is the string or binary that Append makes too long.
//
// Operands are Go values as in Row. An operand that does not fit, NULL, or of a kind that the column's type does
// not take, refuses the row when it is added.
//
// A transaction that writes an operand has not read the row, so its Commit does not conflict with others
// that do the same. Update returns ErrNotFound if the row does not exist in the state that the
// transaction reads, and Commit fails with ErrConflict if it was deleted since. A row that is read
// in the transaction after that is the one of its state with the operand applied, and is read like any
// other.
//
// An Operand can be used with any number of columns and by several goroutines at once.
type Operand struct{ o bind.Operand }

// Add returns the operand that adds delta to a column of integers, decimals, or floats. delta may be
// negative, also if the column is unsigned. Sums of integers and decimals are exact; a sum of floats is
// rounded, so that it depends on the order of the commits, and is refused if it is infinite and neither
// of the two numbers is.
func Add(delta any) Operand { return Operand{bind.Operand{Kind: operand.Add, Value: delta}} }

// Min returns the operand that sets a column of any type but array to v if v is less than its value. The
// order is that of MinOf.
func Min(v any) Operand { return Operand{bind.Operand{Kind: operand.Min, Value: v}} }

// Max returns the operand that sets a column of any type but array to v if v is greater than its value.
// The order is that of MinOf, in which NaN is greater than any number.
func Max(v any) Operand { return Operand{bind.Operand{Kind: operand.Max, Value: v}} }

// SetIfNull returns the operand that sets a column to v if it is NULL.
func SetIfNull(v any) Operand { return Operand{bind.Operand{Kind: operand.SetIfNull, Value: v}} }

// Append returns the operand that appends v to a string, varchar, or binary column.
func Append(v any) Operand { return Operand{bind.Operand{Kind: operand.Append, Value: v}} }

// String returns a text such as Add(1).
func (o Operand) String() string { return o.o.String() }

// operandOf returns the operand that a value of a Row is, if it is one.
func operandOf(v any) (bind.Operand, bool) {
	switch o := v.(type) {
	case Operand:
		return o.o, true
	case bind.Operand: // of package kv
		return o, true
	}
	return bind.Operand{}, false
}
