package aggregate

import (
	"math"

	"github.com/oribi-db/oribi/schema"
)

// tableExtreme is the least or the greatest cell of a column by index.
type tableExtreme struct {
	at   int // the column, as a position in index.Values
	max  bool
	bins []int64 // by index; the upper half is for rows that are not selected
}

// tabulates reports whether the cells are integers of at most 64 bits.
func (e *extreme) tabulates() bool {
	physical := e.typ.Physical()
	return !e.typ.Variable() && physical != schema.Float && physical != schema.Double && e.typ.Width() <= 8
}

// addExtreme is addState for a minimum or a maximum.
func (t *table) addExtreme(s *state) bool {
	if t.indexColumn(s.column) != nil {
		return true
	}
	if !t.infos[s.column].Integers {
		return false
	}
	t.of[len(t.of)-1] = len(t.extremes)
	e := tableExtreme{at: t.valueOf(s.column), max: s.extreme.max, bins: make([]int64, 2<<t.index.Bits)}
	e.clear()
	t.extremes = append(t.extremes, e)
	return true
}

// clear forgets all cells.
func (e *tableExtreme) clear() {
	none := int64(math.MaxInt64)
	if e.max {
		none = math.MinInt64
	}
	for i := range e.bins {
		e.bins[i] = none
	}
}

// add adds each value to the extreme of its index.
func (e *tableExtreme) add(index []uint16, values []int64) {
	bins, values := e.bins, values[:len(index)]
	if e.max {
		for i, x := range index {
			bins[x] = max(bins[x], values[i])
		}
		return
	}
	for i, x := range index {
		bins[x] = min(bins[x], values[i])
	}
}

// flushExtreme adds the cell of rows with index x, of which there is at least one, to a state.
// extreme is its position in t.extremes, -1 if the column is in the index.
func (t *table) flushExtreme(s *state, group uint32, x, extreme int) {
	v := int64(0)
	if extreme >= 0 {
		v = t.extremes[extreme].bins[x]
	} else {
		c := t.indexColumn(s.column)
		if isNull(c, x) {
			return
		}
		v = int64(x >> c.Shift & (1<<c.Bits - 1))
	}
	s.extreme.offer(group, keyOfInteger(s.extreme.typ, v))
}
