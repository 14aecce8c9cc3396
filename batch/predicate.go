package batch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Operator is the comparison of a predicate.
type Operator uint8

// The operators. A NULL cell passes IsNull only.
const (
	Eq       Operator = iota + 1 // cell = value
	Ne                           // cell ≠ value
	Lt                           // cell < value
	Le                           // cell ≤ value
	Gt                           // cell > value
	Ge                           // cell ≥ value
	In                           // cell = one of the values; false without values
	IsNull                       // cell is NULL
	NotNull                      // cell is not NULL
	InFilter                     // cell was added to Filter, or is one of its false positives
	Like                         // cell consists of the values in order, with any bytes between two of them
)

var opNames = [...]string{Eq: "=", Ne: "!=", Lt: "<", Le: "<=", Gt: ">", Ge: ">=", In: "in", IsNull: "is null",
	NotNull: "is not null", InFilter: "in filter", Like: "like"}

// String returns the operator as SQL spells it.
func (o Operator) String() string {
	if o >= Eq && o <= Like {
		return opNames[o]
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// Predicate is a test on the cells of one column.
//
// Values are cells: Width bytes little-endian, or the byte string. Eq to Ge take one, In any
// number, IsNull, NotNull and InFilter none. Floats compare as numbers: −0 equals +0, and with a
// NaN on either side only Ne is true.
//
// Like is for byte strings and takes at least two values, the parts of a pattern. The cell begins
// with the first one, ends with the last one, and has the others in between, in their order and
// without overlap. So {"", "x", ""} is true for each cell that contains x.
//
// Filter is the Bloom filter of InFilter. It contains cells of the column's type, added as the
// bytes that Vector.Cell returns. InFilter passes all of them and, at the filter's false positive
// rate, some others. It never passes NULL and NaN; if −0 or +0 was added, it passes both. The
// filter must not change afterwards.
//
// Prepare checks the predicate and makes the other methods faster; they work without it too. After
// Prepare the fields must not change, and the predicate and its copies are safe for concurrent use.
type Predicate struct {
	Column string
	ID     schema.ColumnID
	Type   schema.Type
	Op     Operator
	Values [][]byte
	Filter *bloom.BloomFilter // for InFilter; nil for other operators

	// MayRest allows FilterEval to pass all cells except NULLs, instead of testing them, while
	// nearly all pass the test. It is for InFilter only, and for filters that are not negated: the
	// result then has more false positives.
	MayRest bool

	words *wordCache // set by Prepare; shared by copies
	rest  *resting   // set by Prepare if MayRest is; shared by copies
}

// Prepare checks p and makes its evaluation faster: it replaces the values of In by a sorted copy
// without duplicates, NULLs and NaNs, and creates a cache of results for dictionaries. Errors:
// ErrSchema for a wrong number of values and for a value that is not a cell of the type.
func (p *Predicate) Prepare() error {
	if err := p.check(); err != nil {
		return fmt.Errorf("predicate on column %q: %w", p.Column, err)
	}
	if p.Op == In {
		p.Values = sortCells(p.Type, p.Values)
	}
	p.words = new(wordCache)
	if p.MayRest {
		p.rest = newResting(p)
	}
	return nil
}

// Prepared reports whether Prepare has been called, which checks the values against Type.
func (p *Predicate) Prepared() bool { return p.words != nil }

func (p *Predicate) check() error {
	if !p.Type.Valid() {
		return fmt.Errorf("unknown type %d: %w", int32(p.Type), fault.ErrSchema)
	}
	switch {
	case p.Op < Eq || p.Op > Like:
		return fmt.Errorf("unknown operator %d: %w", uint8(p.Op), fault.ErrSchema)
	case p.Op <= Ge && len(p.Values) != 1:
		return fmt.Errorf("%s takes one value, not %d: %w", p.Op, len(p.Values), fault.ErrSchema)
	case p.Op == Like && len(p.Values) < 2:
		return fmt.Errorf("%s takes at least two values, not %d: %w", p.Op, len(p.Values), fault.ErrSchema)
	case p.Op == Like && (!p.Type.Variable() || p.Type == schema.Array):
		return fmt.Errorf("%s is for byte strings, not %s: %w", p.Op, p.Type, fault.ErrSchema)
	case p.Op >= IsNull && p.Op != Like && len(p.Values) != 0:
		return fmt.Errorf("%s takes no value: %w", p.Op, fault.ErrSchema)
	case p.Type == schema.Array && p.Op != IsNull && p.Op != NotNull:
		return fmt.Errorf("arrays are tested for NULL only, not by %s: %w", p.Op, fault.ErrSchema)
	case (p.Op == InFilter) != (p.Filter != nil):
		return fmt.Errorf("%s, with a filter: %v: %w", p.Op, p.Filter != nil, fault.ErrSchema)
	case p.MayRest && p.Op != InFilter:
		return fmt.Errorf("%s is exact: %w", p.Op, fault.ErrSchema)
	case p.Op == InFilter && p.Filter.Cap() == 0:
		return fmt.Errorf("an empty filter: %w", fault.ErrSchema)
	}
	for _, v := range p.Values {
		// NULL in a list is legal, as it is in SQL, and equals nothing.
		if v == nil && p.Op == In {
			continue
		}
		if v == nil || !p.Type.Variable() && len(v) != p.Type.Width() {
			return fmt.Errorf("a value of %d bytes is not a %s cell: %w", len(v), p.Type, fault.ErrSchema)
		}
	}
	return nil
}

// EvalCell reports whether a cell, nil for NULL, passes the predicate.
func (p *Predicate) EvalCell(cell []byte) bool {
	switch {
	case p.Op == IsNull:
		return cell == nil
	case cell == nil:
		return false
	case p.Op == NotNull:
		return true
	case p.Op == In:
		return p.contains(cell)
	case p.Op == InFilter:
		return p.inFilter(cell)
	case p.Op == Like:
		return like(cell, p.Values)
	}
	c := p.Values[0]
	if p.Type.Variable() {
		if p.Op == Eq || p.Op == Ne {
			return bytes.Equal(cell, c) == (p.Op == Eq)
		}
	} else if IsNaN(p.Type, cell) || IsNaN(p.Type, c) {
		return p.Op == Ne
	}
	return p.Op.holds(Compare(p.Type, cell, c))
}

// holds reports whether o is true for the result of comparing cell and value.
func (o Operator) holds(order int) bool {
	switch o {
	case Eq:
		return order == 0
	case Ne:
		return order != 0
	case Lt:
		return order < 0
	case Le:
		return order <= 0
	case Gt:
		return order > 0
	}
	return order >= 0
}

// contains reports whether cell is one of the values of In. It uses binary search if Prepare has
// sorted them.
func (p *Predicate) contains(cell []byte) bool {
	if IsNaN(p.Type, cell) {
		return false
	}
	if p.words == nil {
		for _, v := range p.Values {
			if v != nil && !IsNaN(p.Type, v) && Compare(p.Type, cell, v) == 0 {
				return true
			}
		}
		return false
	}
	lo, hi := 0, len(p.Values)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch order := Compare(p.Type, cell, p.Values[mid]); {
		case order == 0:
			return true
		case order < 0:
			hi = mid
		default:
			lo = mid + 1
		}
	}
	return false
}

// like reports whether cell consists of the parts, with any bytes between two of them. Each part but
// the last is taken where it first occurs: that leaves the most for the parts after it. The time is
// proportional to the length of the cell and of the parts.
func like(cell []byte, parts [][]byte) bool {
	last := len(parts) - 1
	if !bytes.HasPrefix(cell, parts[0]) {
		return false
	}
	cell = cell[len(parts[0]):]
	if !bytes.HasSuffix(cell, parts[last]) {
		return false
	}
	cell = cell[:len(cell)-len(parts[last])]
	for _, part := range parts[1:last] {
		i := bytes.Index(cell, part)
		if i < 0 {
			return false
		}
		cell = cell[i+len(part):]
	}
	return true
}

// inFilter looks up a cell in the filter. −0 and +0 are equal, so it looks up both for a float
// zero.
func (p *Predicate) inFilter(cell []byte) bool {
	if IsNaN(p.Type, cell) {
		return false
	}
	if p.Filter.Test(cell) {
		return true
	}
	if p.Type != schema.Float && p.Type != schema.Double {
		return false
	}
	var other [8]byte
	n := copy(other[:], cell)
	other[n-1] ^= 0x80
	return Compare(p.Type, cell, other[:n]) == 0 && p.Filter.Test(other[:n])
}

// Compare compares two cells of type t, neither NULL. The result is negative if a < b, 0 if a = b,
// and positive if a > b.
//
// Byte strings compare by unsigned bytes, a prefix first; false is before true; −0 equals +0. NaN
// is not ordered and compares as equal to everything; callers must check for it. Cells of fixed
// width must have Width bytes.
func Compare(t schema.Type, a, b []byte) int {
	le := binary.LittleEndian
	switch t.Physical() {
	case schema.Binary:
		return bytes.Compare(a, b)
	case schema.Int64:
		return cmp.Compare(int64(le.Uint64(a)), int64(le.Uint64(b)))
	case schema.Int32:
		return cmp.Compare(int32(le.Uint32(a)), int32(le.Uint32(b)))
	case schema.Int16:
		return cmp.Compare(int16(le.Uint16(a)), int16(le.Uint16(b)))
	case schema.Int8:
		return cmp.Compare(int8(a[0]), int8(b[0]))
	case schema.Uint64:
		return cmp.Compare(le.Uint64(a), le.Uint64(b))
	case schema.Uint32:
		return cmp.Compare(le.Uint32(a), le.Uint32(b))
	case schema.Uint16:
		return cmp.Compare(le.Uint16(a), le.Uint16(b))
	case schema.Uint8, schema.Bool:
		return cmp.Compare(a[0], b[0])
	case schema.Float:
		return compareFloats(float64(math.Float32frombits(le.Uint32(a))), float64(math.Float32frombits(le.Uint32(b))))
	case schema.Double:
		return compareFloats(math.Float64frombits(le.Uint64(a)), math.Float64frombits(le.Uint64(b)))
	case schema.Int128:
		if order := cmp.Compare(int64(le.Uint64(a[8:])), int64(le.Uint64(b[8:]))); order != 0 {
			return order
		}
		return cmp.Compare(le.Uint64(a), le.Uint64(b))
	}
	panic(fmt.Sprintf("batch: no order for %s", t))
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// IsNaN reports whether a cell of type t, which is not NULL, is a NaN.
func IsNaN(t schema.Type, cell []byte) bool {
	switch t {
	case schema.Float:
		f := math.Float32frombits(binary.LittleEndian.Uint32(cell))
		return f != f
	case schema.Double:
		f := math.Float64frombits(binary.LittleEndian.Uint64(cell))
		return f != f
	}
	return false
}
