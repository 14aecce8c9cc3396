package peer

import (
	"context"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
)

// scanned answers a query with a scan, and adds up the values of its batches.
func (o *oribiLineitem) scanned(q Question) (*Answer, error) {
	a := &Answer{}
	names := q.Needs()
	if q == Q1 { // the date is only tested
		names = append(names[:4:4], names[5:]...)
	}
	for b, err := range o.table.Scan(context.Background(), oribi.Columns(names...),
		oribi.Where(predicates(q)...), oribi.AnyOrder()).Batches() {
		if err != nil {
			return nil, err
		}
		switch {
		case q == Sum && b.Selected() == b.Len:
			a.AddColumns(q, &Columns{PartKey: batch.Values[int64](b.Columns[0])}, b.Len)
		case q == Group && b.Columns[1].Dict != nil:
			o.addCodes(a, b)
		case q == Q1:
			o.addPricing(a, b)
		default:
			o.addRows(a, b)
		}
	}
	return a, nil
}

// addRows adds up the first column. With two columns, it has a sum for each value of the second.
func (o *oribiLineitem) addRows(a *Answer, b *batch.RecordBatch) {
	values := batch.Values[int64](b.Columns[0])
	for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
		key := ""
		if len(b.Columns) > 1 {
			key = string(b.Columns[1].Cell(i))
		}
		g := a.Group(key)
		g[0] += values[i]
		g[1]++
	}
}

// addPricing computes Q1. It finds the groups by the codes of two dictionaries if the columns are
// dictionary-encoded.
func (o *oribiLineitem) addPricing(a *Answer, b *batch.RecordBatch) {
	long := func(i int) []int64 { return batch.Values[int64](b.Columns[i]) }
	quantity, price, discount, tax := long(0), long(1), long(2), long(3)
	flags, states := b.Columns[4], b.Columns[5]
	if flags.Dict == nil || states.Dict == nil {
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			q1(a.Group(string(flags.Cell(i))+string(states.Cell(i))), quantity[i], price[i], discount[i], tax[i])
		}
		return
	}
	wide := uint32(len(states.Dict.Words))
	groups := make([]*[8]int64, len(flags.Dict.Words)*int(wide))
	for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
		f, s := flags.Codes[i], states.Codes[i]
		g := groups[f*wide+s]
		if g == nil {
			g = a.Group(string(flags.Dict.Words[f]) + string(states.Dict.Words[s]))
			groups[f*wide+s] = g
		}
		q1(g, quantity[i], price[i], discount[i], tax[i])
	}
}

// addCodes groups by the codes of a dictionary, without comparing the strings of each row.
func (o *oribiLineitem) addCodes(a *Answer, b *batch.RecordBatch) {
	v, modes := batch.Values[int64](b.Columns[0]), b.Columns[1]
	groups := make([][2]int64, len(modes.Dict.Words))
	if b.Selected() == b.Len {
		for i, code := range modes.Codes[:len(v)] {
			g := &groups[code]
			g[0], g[1] = g[0]+v[i], g[1]+1
		}
	} else {
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			g := &groups[modes.Codes[i]]
			g[0], g[1] = g[0]+v[i], g[1]+1
		}
	}
	for code, sums := range groups {
		if sums[1] > 0 {
			g := a.Group(string(modes.Dict.Words[code]))
			g[0], g[1] = g[0]+sums[0], g[1]+sums[1]
		}
	}
}
